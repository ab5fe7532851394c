// Runs the tasks of MCP 2025-11-25 with the official client of the Tasks extension, and prints what it saw as JSON. That
// client does not ask for results while a task waits for input, so it is never asked anything.
// Usage: node typescript_ext_core_tasks.mjs URL|COMMAND…
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import { connector } from './transport.mjs';

const client = new Client({ name: 'taskbridge-e2e', version: '1' });
await client.connect(connector(StreamableHTTPClientTransport, StdioClientTransport)(process.argv.slice(2)));
const session = createTaskSessionFromClient(client, { endpointId: 'taskbridge' });

// run follows one call to its end.
async function run(name, args, during) {
  const execution = await session.callTool(name, args, { task: { preference: 'prefer' } });
  await during?.(execution);
  const { outcome } = await execution.settle();
  const { status, result, error } = outcome;
  return { kind: execution.kind, status, result, message: error?.message };
}

const seen = {
  completed: await run('echo', { text: 'a b' }),
  required: await run('backup', {}),
  failed: await run('fail', {}),
  cancelled: await run('await_file', { file: '/nonexistent' }, (execution) => execution.cancel()),
};
await session.close();
await client.close();
console.log(JSON.stringify(seen));
