// Listens to a task with the official TypeScript SDK, answers its question, and prints what was pushed as JSON.
// Usage: node typescript_listen.mjs URL
//        node typescript_listen.mjs COMMAND ARG...
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { TaskStatusNotificationV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { connector, dispatcher } from './transport.mjs';

const protocolVersion = '2026-07-28';
const clientInfo = { name: 'taskbridge-e2e', version: '1' };
const capabilities = { elicitation: { form: {} }, extensions: { 'io.modelcontextprotocol/tasks': {} } };

const transport = connector(StreamableHTTPClientTransport, StdioClientTransport)(process.argv.slice(2));
const client = new Client(clientInfo, { capabilities, versionNegotiation: { mode: { pin: protocolVersion } } });
await client.connect(transport);

// The SDK drops the task IDs of an acknowledgement before it shows it.
const acknowledged = {};
const deliver = transport.onmessage;
transport.onmessage = (message, extra) => {
  if (message.method === 'notifications/subscriptions/acknowledged') {
    acknowledged[message.params._meta['io.modelcontextprotocol/subscriptionId']] = message.params.notifications;
  }
  return deliver(message, extra);
};

const dispatch = dispatcher(transport);
async function request(method, params) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': protocolVersion,
    'io.modelcontextprotocol/clientInfo': clientInfo,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const { result, error } = await dispatch({ method, params: { ...params, _meta } });
  if (error) throw new Error(error.message);
  return result;
}

const { taskId } = await request('tools/call', { name: 'release', arguments: { version: '1.2' } });
const pushed = {};
let answered;
let ended;
const end = new Promise((resolve) => { ended = resolve; });
client.fallbackNotificationHandler = async ({ method, params }) => {
  const { _meta, ...task } = TaskStatusNotificationV2Schema.parse({ jsonrpc: '2.0', method, params }).params;
  const id = params._meta['io.modelcontextprotocol/subscriptionId'];
  (pushed[id] ??= []).push(task);
  if (task.status === 'input_required') {
    const inputResponses = {};
    for (const key of Object.keys(task.inputRequests)) {
      inputResponses[key] = { action: 'accept', content: { channel: 'beta' } };
    }
    answered ??= request('tasks/update', { taskId, inputResponses });
  }
  if (Object.values(pushed).filter((tasks) => tasks.at(-1).status === 'completed').length === 2) ended();
};
const tasks = await client.listen({ taskIds: [taskId, 'unknown'] });
const both = await client.listen({ taskIds: [taskId], toolsListChanged: true });
await end;
const closed = await tasks.closed;
await answered;
await both.close();
const { resultType, _meta, ...read } = await request('tasks/get', { taskId });
await client.close();
console.log(JSON.stringify({ taskId, acknowledged, honored: both.honoredFilter, pushed, closed, read }));
