// Drives a server with the TypeScript SDK, as a client that knows no tasks, and prints what it saw as JSON.
// Usage: node typescript_sdk.mjs v1|v2 URL
import * as v2 from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [version, url] = process.argv.slice(2);
const self = { name: 'taskbridge-e2e', version: '1' };

async function connect() {
  const endpoint = new URL(url);
  if (version === 'v1') { // its newest protocol is 2025-11-25
    const transport = new StreamableHTTPClientTransport(endpoint);
    const client = new Client(self);
    await client.connect(transport);
    return { client, protocol: transport.protocolVersion };
  }
  const client = new v2.Client(self, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new v2.StreamableHTTPClientTransport(endpoint));
  return { client, protocol: client.getNegotiatedProtocolVersion() };
}

const { client, protocol } = await connect();
const call = (name, args) =>
  client.callTool({ name, arguments: args }).catch(({ code, message }) => ({ error: { code, message } }));
const seen = {
  server: client.getServerVersion().name,
  protocol,
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  greeting: await call('greet', { name: 'Ada' }),
  computation: await call('slow_compute', { seconds: 0.2, label: 'primes' }),
  protocolError: await call('protocol_error_job', {}),
  badArguments: await call('greet', { name: 7 }),
  unknownTool: await call('nope', {}),
};
await client.close();
console.log(JSON.stringify(seen));
