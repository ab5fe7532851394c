// Does what a test vector of docs/contract-vectors.json says, by task.ts. To check a helper in another language, write
// this workflow there.
import { ActivityCancellationType, continueAsNew, proxyActivities } from '@temporalio/workflow';
import type { Answer, Field, Form } from '../form.js';
import { errorResult, rpcError, Task, textResult, type Carry } from '../task.js';

export interface Question {
  name: string;
  message: string;
  requestedSchema: { properties: Record<string, Field>; required: string[] };
}

export type Step =
  | { status: string }
  | { progress: { done: number; total?: number } }
  | { ask: Question } // opens a question, and does not wait
  | { answers: true } // waits for the answers to all open questions
  | { work: string } // runs an activity that heartbeats this message until it is cancelled
  | { continueAsNew: true }
  | { text: string } // ends with a tool result
  | { error: string }
  | { rpcError: { code: number; message: string; data?: unknown } };

const { work } = proxyActivities<{ work(message: string): Promise<void> }>({
  startToCloseTimeout: '1 minute',
  heartbeatTimeout: '10 seconds',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

/** Returns the answers in the order of their questions, unless a step ends it in another way. */
export async function contractVector(steps: Step[], carried?: Carry, given: Answer<Form>[] = []): Promise<unknown> {
  const task = new Task(carried);
  let open: Promise<Answer<Form>>[] = [];
  for (const [index, step] of steps.entries()) {
    if ('status' in step) task.status(step.status);
    if ('progress' in step) task.progress(step.progress.done, step.progress.total);
    if ('ask' in step) open.push(task.elicit(step.ask.name, step.ask.message, form(step.ask)));
    if ('answers' in step) given.push(...(await Promise.all(open)));
    if ('answers' in step) open = [];
    if ('work' in step) await work(step.work);
    if ('continueAsNew' in step) await continueAsNew<typeof contractVector>(steps.slice(index + 1), task.carry(), given);
    if ('text' in step) return textResult(step.text);
    if ('error' in step) return errorResult(step.error);
    if ('rpcError' in step) throw rpcError(step.rpcError.code, step.rpcError.message, step.rpcError.data);
  }
  return given;
}

function form({ requestedSchema: { properties, required } }: Question): Form {
  return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, { ...field, optional: !required.includes(name) }]));
}
