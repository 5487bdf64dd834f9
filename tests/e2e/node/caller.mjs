// The TypeScript client. See tests/e2e/clients/__init__.py for what it reads and writes.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { connect, provider } from './keychain.mjs';
import { answer, callWhatIsWanted, hear, noteLog, tell } from './person.mjs';

const TIMEOUT = { timeout: 60_000 };

const { url, token, revision, tokens } = await hear();
const era = revision
  ? { supportedProtocolVersions: [revision] }
  : { versionNegotiation: { mode: 'auto' } };
const client = new Client(
  { name: 'e2e', version: '1' },
  { capabilities: { elicitation: { form: {}, url: {} }, sampling: {} }, ...era },
);
client.setRequestHandler('elicitation/create', ({ params }) => answer(params));
client.setRequestHandler('sampling/createMessage', ({ params }) => answer(params));
client.setNotificationHandler('notifications/tools/list_changed', ({ method }) => tell({ heard: method }));
client.setNotificationHandler('notifications/message', noteLog);
const authProvider = tokens ? await provider(tokens) : undefined;
const headers = tokens ? {} : { Authorization: `Bearer ${token}` };
const transport = () => new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers }, authProvider });
await connect(client, transport, authProvider, (signedIn, parameters) => signedIn.finishAuth(parameters));
const { tools } = await client.listTools(undefined, TIMEOUT);
tell({ met: { revision: client.getNegotiatedProtocolVersion(), tools: tools.map(({ name }) => name) } });
const _meta = revision ? undefined : { 'io.modelcontextprotocol/logLevel': 'info' };
await callWhatIsWanted(
  (name, args, onprogress) => client.callTool({ name, arguments: args, _meta }, { ...TIMEOUT, onprogress }),
  (uri) => client.readResource({ uri }, TIMEOUT),
  (name, args) => client.getPrompt({ name, arguments: args }, TIMEOUT),
);
await client.close();
