// The TypeScript SDK before 2.0. See tests/e2e/clients/__init__.py for what it reads and writes.
//
// It asks for the revision that it is told to: that is how a client before its own looks to a server.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { connect, provider } from './keychain.mjs';
import { answer, callWhatIsWanted, hear, noteLog, tell } from './person.mjs';

const TIMEOUT = { timeout: 60_000 };

const { url, token, revision, tokens } = await hear();
const canAsk = 'ElicitRequestSchema' in types; // not before 1.13
let spoken;

class Older extends StreamableHTTPClientTransport {
  send(message, options) {
    const initializes = message.method === 'initialize';
    const params = { ...message.params, ...(revision && { protocolVersion: revision }) };
    return super.send(initializes ? { ...message, params } : message, options);
  }

  // Not called before 1.13.
  setProtocolVersion(version) {
    spoken = version;
    super.setProtocolVersion(version);
  }
}

const client = new Client({ name: 'e2e', version: '1' }, { capabilities: { ...(canAsk && { elicitation: { form: {}, url: {} } }), sampling: {} } });
if (canAsk) client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => answer(params));
client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => answer(params));
client.setNotificationHandler(types.LoggingMessageNotificationSchema, noteLog);
client.setNotificationHandler(types.ToolListChangedNotificationSchema, ({ method }) => tell({ heard: method }));
const authProvider = tokens ? await provider(tokens) : undefined;
const headers = tokens ? {} : { Authorization: `Bearer ${token}` };
const transport = () => new Older(new URL(url), { requestInit: { headers }, authProvider });
await connect(client, transport, authProvider, (signedIn, parameters) => signedIn.finishAuth(parameters.get('code')));
const { tools } = await client.listTools(undefined, TIMEOUT);
tell({ met: { revision: spoken, tools: tools.map(({ name }) => name) } });
await callWhatIsWanted(
  (name, args, onprogress) => client.callTool({ name, arguments: args }, undefined, { ...TIMEOUT, onprogress }),
  (uri) => client.readResource({ uri }, TIMEOUT),
  (name, args) => client.getPrompt({ name, arguments: args }, TIMEOUT),
);
await client.close();
