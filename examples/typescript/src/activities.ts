import { heartbeat, sleep } from '@temporalio/activity';
import { heartbeatMessage } from './task.js';

/** Computes for some seconds, tells how far it is, and stops when it is cancelled: `sleep` rejects then. */
export async function compute(seconds: number, label: string): Promise<string> {
  for (let done = 0; done < seconds; done++) {
    heartbeat(heartbeatMessage(`computing ${label}: ${done} of ${seconds} seconds`));
    await sleep(Math.min(1, seconds - done) * 1000);
  }
  return `computed ${label} for ${seconds} seconds`;
}
