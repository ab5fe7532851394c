// Runs the tasks of MCP 2025-11-25 with the TypeScript SDK 1.x, and prints what it saw as JSON.
// Usage: node typescript_core_tasks.mjs URL|COMMAND…
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema, ElicitRequestSchema, RELATED_TASK_META_KEY, TaskStatusNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { connector } from './transport.mjs';

// until waits, but not for ever: what is not so then, is not in what the script prints either.
async function until(condition) {
  for (const deadline = Date.now() + 30_000; !(await condition()) && Date.now() < deadline;) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const client = new Client({ name: 'taskbridge-e2e', version: '1' }, { capabilities: { elicitation: { form: {} } } });
const pushed = {}; // what the server told of each task on its own: its statuses and progress, in order
const push = (id, what) => (pushed[id] ??= []).push(what);
client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => push(params.taskId, params.status));
const questions = [];
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  const task = params._meta?.[RELATED_TASK_META_KEY]?.taskId;
  questions.push({ message: params.message, task });
  await until(() => pushed[task]?.includes('input_required'));
  return { action: 'accept', content: { channel: 'beta' } };
});
await client.connect(connector(StreamableHTTPClientTransport, StdioClientTransport)(process.argv.slice(2)));

const { tasks } = client.experimental;
const attempt = (promise) => promise.catch(({ code, message }) => ({ error: { code, message } }));
const resultOf = (id) => attempt(tasks.getTaskResult(id, CallToolResultSchema));

// run follows one call to its end.
async function run(name, args, during) {
  const progress = [];
  const seen = { types: [], statuses: [], messages: [], progress };
  const stream = tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, {
    task: { ttl: 600_000 },
    onprogress: (step) => {
      progress.push(step);
      push(step._meta?.[RELATED_TASK_META_KEY]?.taskId, 'progress');
    },
  });
  for await (const { type, task, result, error } of stream) {
    if (seen.types.at(-1) !== type) seen.types.push(type);
    if (task !== undefined) {
      seen.task = task.taskId;
      if (seen.statuses.at(-1) !== task.status) seen.statuses.push(task.status);
      if (task.statusMessage && seen.messages.at(-1) !== task.statusMessage) seen.messages.push(task.statusMessage);
    }
    if (result !== undefined) seen.result = result;
    if (error !== undefined) seen.error = { code: error.code, message: error.message };
    await during?.(type, task);
  }
  seen.final = await attempt(tasks.getTask(seen.task));
  seen.resultAgain = await resultOf(seen.task);
  return seen;
}

// cancelWorking cancels a task once it is seen to work.
async function cancelWorking(type, task) {
  if (type === 'taskStatus' && task.status === 'working') await tasks.cancelTask(task.taskId);
}

// list is all tasks that the server lists, over all pages.
async function list() {
  const ids = [];
  let cursor;
  do {
    const page = await tasks.listTasks(cursor);
    ids.push(...page.tasks.map((task) => task.taskId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return ids;
}

const tools = (await client.listTools()).tools;
const seen = {
  capability: client.getServerCapabilities().tasks,
  support: Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport])),
  tasks: {
    completed: await run('echo', { text: 'a b' }),
    asked: await run('release', { version: '1.2' }),
    failed: await run('fail', {}),
    required: await run('backup', {}),
    cancelled: await run('await_file', { file: '/nonexistent' }, cancelWorking),
  },
  synchronous: await attempt(client.callTool({ name: 'echo', arguments: { text: 'a b' } })),
  unknown: await attempt(tasks.getTask('no-such-task')),
  questions,
};
seen.cancelledTwice = await attempt(tasks.cancelTask(seen.tasks.cancelled.task));
const ids = Object.values(seen.tasks).map(({ task }) => task);
await until(async () => { // a list may be some moments behind
  seen.listed = await list();
  return ids.every((id) => seen.listed.includes(id));
});
const ended = (id) => pushed[id]?.some((what) => ['completed', 'failed', 'cancelled'].includes(what));
await until(() => ids.every(ended));
seen.pushed = pushed;
await client.close();
console.log(JSON.stringify(seen));
