// The TypeScript client. See tests/e2e/clients/__init__.py for what it reads and writes.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createInterface } from 'node:readline';

const TIMEOUT = { timeout: 60_000 };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

async function hear() {
  const { value, done } = await lines.next();
  return done ? null : JSON.parse(value);
}

const { url, token, mode } = await hear();
const versionNegotiation = mode === 'legacy' ? undefined : { mode: mode ?? 'auto' };
const client = new Client(
  { name: 'e2e', version: '1' },
  { capabilities: { elicitation: { form: {} } }, ...(versionNegotiation && { versionNegotiation }) },
);
client.setRequestHandler('elicitation/create', async ({ params }) => {
  tell({ asked: params });
  return hear();
});
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }), TIMEOUT);
const { tools } = await client.listTools(undefined, TIMEOUT);
tell({ met: { revision: client.getNegotiatedProtocolVersion(), tools: tools.map(({ name }) => name) } });
for (let wanted = await hear(); wanted !== null; wanted = await hear()) {
  try {
    tell({ done: await client.callTool({ name: wanted.call, arguments: wanted.arguments }, TIMEOUT) });
  } catch (error) {
    tell({ raised: `${error.name}: ${error.message}` });
  }
}
await client.close();
