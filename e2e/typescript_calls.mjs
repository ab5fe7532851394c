// Calls a tool to its end with the TypeScript SDK, follows its progress and answers its question, and prints what it saw
// as JSON. Usage: node typescript_calls.mjs v1|v2 URL|COMMAND…
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioClientTransportV2 } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { connector } from './transport.mjs';

const [version, ...target] = process.argv.slice(2);
const self = { name: 'taskbridge-e2e', version: '1' };
const capabilities = { elicitation: { form: {} } };

const events = [];
const answer = ({ params }) => {
  events.push({ question: params.message });
  return { action: 'accept', content: { channel: 'beta' } };
};

async function connect() {
  if (version === 'v1') { // its newest protocol is 2025-11-25
    const client = new Client(self, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, answer);
    const transport = connector(StreamableHTTPClientTransport, StdioClientTransport)(target);
    await client.connect(transport);
    return { client, call: (params, options) => client.callTool(params, CallToolResultSchema, options) };
  }
  const client = new v2.Client(self, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } });
  client.setRequestHandler('elicitation/create', answer);
  await client.connect(connector(v2.StreamableHTTPClientTransport, StdioClientTransportV2)(target));
  return { client, call: (params, options) => client.callTool(params, options) };
}

const { client, call } = await connect();
const onprogress = (progress) => {
  if (progress.total !== undefined) events.push(progress); // version 2 tells of its own rounds too, without a total
};
const result = await call({ name: 'release', arguments: { version: '1.2' } }, { onprogress });
await client.close();
console.log(JSON.stringify({ result, events }));
