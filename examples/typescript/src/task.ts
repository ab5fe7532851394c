// The workflow side of an MCP task: version 1 of taskbridge's docs/contract.md. Copy it and form.ts.
import {
  ApplicationFailure, condition, defineQuery, defineSignal, setHandler, upsertMemo, workflowInfo,
} from '@temporalio/workflow';
import { readAnswer, requestedSchema, type Answer, type Form } from './form.js';

interface Request { method: string; params: unknown }
/** A request from its issue until its asker has the answer; not `asked` while carried over from the run before. */
interface Question { key: string; name: string; request: Request; asked: boolean; answer?: unknown }
interface Progress { done: number; total?: number }
export interface Carry { nextKey: number; questions: Question[]; progress?: Progress }

/** The running workflow as an MCP task. Make one in its first line, so that no answer comes too early. */
export class Task {
  private message?: string;
  private made?: Progress;
  private nextKey = 0;
  private questions: Question[] = [];
  private published = '';
  private updatedAt = new Date().toISOString();

  /** @param carried what `carry()` returned in the run before, if this one continues it. */
  constructor(carried?: Carry) {
    if (carried) ({ nextKey: this.nextKey, questions: this.questions, progress: this.made } = carried);
    setHandler(defineQuery('mcp.task.state'), () => ({ ...this.state(), updatedAt: this.updatedAt }));
    setHandler(defineSignal<[any]>('mcp.task.input'), (input) => this.accept(input?.responses ?? {}));
    if (workflowInfo().continuedFromExecutionRunId) this.publish(); // else the memo of the run before would stay
  }

  /** Says in one line what the workflow is doing now. */
  status(message: string): void {
    const limit = 4096; // characters; a memo that is too large would fail the workflow task again and again
    this.message = message.length > limit ? `${message.slice(0, limit)}…` : message;
    this.publish();
  }

  /** Says how much is done, in steps, files or rows, of `total` or of nobody knows how much. `done` should not fall. */
  progress(done: number, total?: number): void {
    this.made = { done, total: total || undefined };
    this.publish();
  }

  /**
   * Asks a person by a form, and again when the answer does not fit. To have several questions open at once, call it
   * for each and await them by `Promise.all`. It rejects when the workflow is cancelled.
   */
  async elicit<const F extends Form>(name: string, message: string, form: F): Promise<Answer<F>> {
    for (let text = message; ; ) {
      const params = { mode: 'form', message: text, requestedSchema: requestedSchema(form) };
      const answer = readAnswer(await this.request(name, 'elicitation/create', params), form);
      if (typeof answer === 'object') return answer as Answer<F>;
      text = `${message}\n(The last answer could not be used: ${answer}.)`;
    }
  }

  /** Sends the client any input request, `sampling/createMessage` and `roots/list` too, and returns its result. */
  async request(name: string, method: string, params: unknown): Promise<unknown> {
    const question = this.issue(name, { method, params });
    try {
      await condition(() => question.answer !== undefined);
      return question.answer;
    } finally {
      this.questions = this.questions.filter((other) => other !== question);
      this.publish();
    }
  }

  /** What the next run passes to `new Task`. Call it last, in the arguments of `continueAsNew`. */
  carry(): Carry {
    const kept = this.questions.filter((q) => q.asked || q.answer !== undefined).map((q) => ({ ...q, asked: false }));
    return { nextKey: this.nextKey, questions: kept, progress: this.made };
  }

  /** Opens a question, under a new key unless the run before has left the same one. */
  private issue(name: string, request: Request): Question {
    const same = (q: Question) => q.name === name && JSON.stringify(q.request) === JSON.stringify(request);
    let question = this.questions.find((q) => !q.asked && same(q));
    if (!question) {
      question = { key: `${name}-${++this.nextKey}`, name, request, asked: true };
      this.questions.push(question);
    }
    question.asked = true;
    this.publish();
    return question;
  }

  /** Keeps the first answer to each question, and ignores everything else. */
  private accept(responses: Record<string, unknown>): void {
    for (const question of this.questions) question.answer ??= responses[question.key] ?? undefined;
    this.publish();
  }

  private state(): object {
    const open = this.questions.filter((q) => q.asked && q.answer === undefined).map((q) => [q.key, q.request]);
    const inputRequests = open.length > 0 ? Object.fromEntries(open) : undefined;
    return { v: 1, statusMessage: this.message || undefined, inputRequests, progress: this.made };
  }

  /** Upserts the memo if anything but the time has changed. */
  private publish(): void {
    const state = this.state();
    if (JSON.stringify(state) === this.published) return;
    this.published = JSON.stringify(state);
    this.updatedAt = new Date().toISOString();
    upsertMemo({ 'mcp.task': { ...state, updatedAt: this.updatedAt } });
  }
}

/** A workflow result in the form of an MCP `CallToolResult`; the tool's catalog entry says `result: mcp`. */
export interface ToolResult { content: { type: string }[]; structuredContent?: unknown; isError?: boolean }
export const textResult = (text: string): ToolResult => ({ content: [{ type: 'text', text } as { type: string }] });
/** The tool ran and failed, and the model may try something else. */
export const errorResult = (text: string): ToolResult => ({ ...textResult(text), isError: true });

/** Throw it, and the task fails with exactly this JSON-RPC error: for what no other arguments could help. */
export const rpcError = (code: number, message: string, data?: unknown): ApplicationFailure =>
  ApplicationFailure.create({ type: 'mcp.RPCError', message, nonRetryable: true, details: [{ code, message, data }] });

/** What an activity passes to `heartbeat()` to be shown in place of the workflow's status. */
export const heartbeatMessage = (statusMessage: string): object => ({ v: 1, statusMessage });
