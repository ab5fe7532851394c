// Checks what workflows do by the contract, as Temporal sees it: node lib/contract/check.js VECTORS [TASK QUEUE]
// Without a task queue it runs a worker of its own, which checks ../task.ts.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { heartbeat, sleep } from '@temporalio/activity';
import {
  ApplicationFailure, CancelledFailure, Client, Connection, defaultPayloadConverter, WorkflowFailedError, type WorkflowHandle,
} from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { NativeConnection, Worker } from '@temporalio/worker';
import { heartbeatMessage } from '../task.js';
import type { Step } from './workflow.js';

type Event = { memo: object } | { open: string[] } | { heartbeat: object } | { signal: unknown } | { cancel: true };
interface Vector { name: string; steps: Step[]; events: Event[]; end: object }

const patience = 30_000; // milliseconds that a worker may take to do the next thing

async function check(client: Client, taskQueue: string, { steps, events, end }: Vector): Promise<void> {
  const workflow = await client.workflow.start('contractVector', { taskQueue, workflowId: randomUUID(), args: [steps] });
  try {
    for (const event of events) await happen(workflow, event);
    assert.deepEqual(await ending(workflow), end);
  } finally {
    await workflow.terminate().catch(() => undefined); // it has ended, unless something went wrong
  }
}

/** Makes an event happen, or waits until it has. */
async function happen(workflow: WorkflowHandle, event: Event): Promise<void> {
  if ('signal' in event) return workflow.signal('mcp.task.input', event.signal);
  if ('cancel' in event) return void (await workflow.cancel());
  for (const deadline = Date.now() + patience; ; await setTimeout(20)) {
    try {
      return assert.deepEqual(await observe(workflow, event), event);
    } catch (mismatch) {
      if (Date.now() > deadline) throw mismatch;
    }
  }
}

/** What is to be seen of a workflow now, of the kind of an event. */
async function observe(workflow: WorkflowHandle, event: Event): Promise<object> {
  const { memo, raw } = await workflow.describe();
  if ('heartbeat' in event) {
    const detail = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads?.[0];
    return { heartbeat: detail && defaultPayloadConverter.fromPayload(detail) };
  }
  const { updatedAt, ...state } = (memo?.['mcp.task'] ?? {}) as { updatedAt?: string; inputRequests?: object };
  if ('open' in event) return { open: Object.keys(state.inputRequests ?? {}).sort() };
  assert.match(updatedAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$/);
  return { memo: state };
}

async function ending(workflow: WorkflowHandle): Promise<object> {
  try {
    return { result: await workflow.result() };
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    if (error.cause instanceof CancelledFailure) return { cancelled: true };
    if (!(error.cause instanceof ApplicationFailure)) throw error;
    const { type, message, nonRetryable, details } = error.cause;
    return { failure: { type, message, nonRetryable, details } };
  }
}

async function checkAll(vectors: Vector[], taskQueue: string): Promise<void> {
  const connection = await Connection.connect(connectionOptions);
  const client = new Client({ connection, namespace });
  for (const vector of vectors) {
    try {
      await check(client, taskQueue, vector);
      console.log(`ok    ${vector.name}`);
    } catch (error) {
      console.log(`FAIL  ${vector.name}: ${error}`);
      process.exitCode = 1;
    }
  }
  await connection.close();
}

async function ownWorker(taskQueue: string): Promise<Worker> {
  return Worker.create({
    connection: await NativeConnection.connect(connectionOptions),
    namespace,
    taskQueue,
    workflowsPath: fileURLToPath(new URL('./workflow.js', import.meta.url)),
    activities: { work },
    maxHeartbeatThrottleInterval: '1 second',
  });
}

async function work(message: string): Promise<void> {
  for (;;) {
    heartbeat(heartbeatMessage(message));
    await sleep('100 ms'); // rejects when the activity is cancelled
  }
}

const { connectionOptions, namespace } = loadClientConnectConfig();
const [file, taskQueue] = process.argv.slice(2);
assert(file, 'usage: check.js VECTORS [TASK QUEUE]');
const { workflows } = JSON.parse(await readFile(file, 'utf8')) as { workflows: Vector[] };
if (taskQueue) {
  await checkAll(workflows, taskQueue);
} else {
  const queue = `contract-${randomUUID()}`;
  await (await ownWorker(queue)).runUntil(() => checkAll(workflows, queue));
}
