// The tools of tools.yaml. They are what the tasks scenarios of the official MCP conformance suite call.
import { ActivityCancellationType, ApplicationFailure, proxyActivities, sleep } from '@temporalio/workflow';
import type * as activities from './activities.js';
import { errorResult, rpcError, Task, textResult, type ToolResult } from './task.js';

const { compute } = proxyActivities<typeof activities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '10 seconds', // it hears of a cancellation by its heartbeats
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED, // the task is cancelled when its work has stopped
});

/** Needs no Task: any workflow is a tool. */
export async function greet(who: { name: string }): Promise<string> {
  return `Hello, ${who.name}!`;
}

/** Reports a status and, from inside its activity, how far it is. Cancelling the task cancels the activity. */
export async function slowCompute({ seconds, label = 'something' }: { seconds: number; label?: string }): Promise<string> {
  const task = new Task();
  task.status(`computing ${label} for ${seconds} seconds`);
  return compute(seconds, label);
}

/** Fails as a tool does: the client gets a result that is an error. */
export async function failingJob(): Promise<never> {
  await sleep('1 second');
  throw ApplicationFailure.nonRetryable('the job failed');
}

/** Fails as a protocol does: the client gets a JSON-RPC error. */
export async function protocolErrorJob(): Promise<never> {
  throw rpcError(-32603, 'the job broke the protocol', { job: 'protocol_error_job' });
}

/** Asks one question. A refusal is an answer, not an error. */
export async function confirmDelete({ filename }: { filename: string }): Promise<ToolResult> {
  const task = new Task();
  const answer = await task.elicit('confirm', `Delete ${filename}?`, {
    confirm: { type: 'boolean', description: 'Delete the file' },
  });
  if (answer.action === 'cancel') return errorResult(`nobody said whether to delete ${filename}`);
  const deleted = answer.action === 'accept' && answer.content.confirm;
  return textResult(`${filename} is ${deleted ? 'deleted' : 'kept'}`);
}

/** Asks two questions at once, and tells how many steps are done. */
export async function multiInput(): Promise<string> {
  const task = new Task();
  task.progress(0, 1);
  const [name, confirm] = await Promise.all([
    task.elicit('name', 'What is your name?', { name: { type: 'string', minLength: 1 } }),
    task.elicit('confirm', 'Go on?', { confirm: { type: 'boolean' } }),
  ]);
  task.progress(1, 1);
  const who = name.action === 'accept' ? name.content.name : 'Somebody';
  return `${who} says ${confirm.action === 'accept' && confirm.content.confirm}`;
}

/** Starts once the question of its catalog entry is answered; the answer is an argument. */
export async function withTask(given: { user_name: { name: string } }): Promise<string> {
  return `Hello, ${given.user_name.name}!`;
}
