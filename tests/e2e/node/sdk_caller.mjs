// The TypeScript SDK before 2.0. See tests/e2e/clients/__init__.py for what it reads and writes.
//
// It asks for the revision that it is told to: that is how a client before its own looks to a server.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { answer, callWhatIsWanted, hear, tell } from './person.mjs';

const TIMEOUT = { timeout: 60_000 };

const { url, token, revision } = await hear();
let spoken;

class Older extends StreamableHTTPClientTransport {
  send(message, options) {
    const initializes = message.method === 'initialize';
    const params = { ...message.params, protocolVersion: revision };
    return super.send(initializes ? { ...message, params } : message, options);
  }

  setProtocolVersion(version) {
    spoken = version;
    super.setProtocolVersion(version);
  }
}

const client = new Client({ name: 'e2e', version: '1' }, { capabilities: { elicitation: { form: {}, url: {} }, sampling: {} } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => answer(params));
client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => tell({ heard: method }));
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new Older(new URL(url), { requestInit: { headers } }), TIMEOUT);
const { tools } = await client.listTools(undefined, TIMEOUT);
tell({ met: { revision: spoken, tools: tools.map(({ name }) => name) } });
await callWhatIsWanted((name, args, onprogress) =>
  client.callTool({ name, arguments: args }, undefined, { ...TIMEOUT, onprogress }),
);
await client.close();
