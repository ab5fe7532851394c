// Runs tasks with the official client of the Tasks extension, and prints what it saw as JSON.
// Usage: node typescript_tasks.mjs URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import { dispatcher } from './transport.mjs';

const protocolVersion = '2026-07-28';
const clientInfo = { name: 'taskbridge-e2e', version: '1' };
const clientCapabilities = { elicitation: { form: {} } };

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const client = new Client(clientInfo, {
  capabilities: clientCapabilities,
  versionNegotiation: { mode: { pin: protocolVersion } },
});
await client.connect(transport);

const questions = [];
const form = {
  'What is your name?': { name: 'Ada' },
  'Go on?': { confirm: true },
  'Delete a.txt?': { confirm: true },
};
const session = createTaskSessionFromClient(client, {
  endpointId: 'taskbridge',
  rawDispatch: dispatcher(transport),
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: async ({ params }, { scope }) => {
    questions.push(`${scope}: ${params.message}`);
    return { action: 'accept', content: form[params.message] };
  },
});

// run follows one call to its end.
async function run(name, args, during) {
  questions.length = 0;
  const execution = await session.callTool(name, args);
  await during?.(execution);
  const { outcome } = await execution.settle();
  const { status, result, error } = outcome;
  return {
    kind: execution.kind,
    status,
    result,
    error: error && { code: error.code, message: error.message, data: error.data },
    questions: questions.toSorted(),
  };
}

const seen = {
  synchronous: await run('greet', { name: 'Ada' }),
  completed: await run('slow_compute', { seconds: 0.2, label: 'primes' }),
  toolFailed: await run('failing_job', {}),
  failed: await run('protocol_error_job', {}),
  cancelled: await run('slow_compute', { seconds: 600 }, (execution) => execution.cancel()),
  asked: await run('confirm_delete', { filename: 'a.txt' }),
  askedTwice: await run('multi_input', {}),
  askedBefore: await run('test_tool_with_task', {}),
};
await session.close();
await client.close();
console.log(JSON.stringify(seen));
