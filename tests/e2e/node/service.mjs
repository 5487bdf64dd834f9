// The TypeScript client. See tests/e2e/clients/__init__.py for what it reads and writes.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { readFileSync } from 'node:fs';

const REVISION = '2026-07-28';
const TIMEOUT = { timeout: 20_000 };
const WANTED = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['note://readme'],
};

const { url, token } = JSON.parse(readFileSync(0, 'utf8'));
const client = new Client({ name: 'e2e', version: '1' }, { versionNegotiation: { mode: { pin: REVISION } } });
const headers = { Authorization: `Bearer ${token}` };

function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

const list = {
  tools: async () => (await client.listTools(undefined, TIMEOUT)).tools.map(({ name }) => name),
  prompts: async () => (await client.listPrompts(undefined, TIMEOUT)).prompts.map(({ name }) => name),
  resources: async () => (await client.listResources(undefined, TIMEOUT)).resources.map(({ uri }) => uri),
};

async function read(uri) {
  return (await client.readResource({ uri }, TIMEOUT)).contents[0].text;
}

async function walk() {
  const called = await client.callTool({ name: 'echo', arguments: { text: 'grüße' } }, TIMEOUT);
  const got = await client.getPrompt({ name: 'greeting', arguments: { who: 'Ada' } }, TIMEOUT);
  const prompt = await client.complete(
    { ref: { type: 'ref/prompt', name: 'greeting' }, argument: { name: 'who', value: 'A' } },
    TIMEOUT,
  );
  const template = await client.complete(
    {
      ref: { type: 'ref/resource', uri: 'note://{shelf}/{name}' },
      argument: { name: 'name', value: 'o' },
      context: { arguments: { shelf: 'top' } },
    },
    TIMEOUT,
  );
  const { resourceTemplates } = await client.listResourceTemplates(undefined, TIMEOUT);
  return {
    revision: client.getNegotiatedProtocolVersion(),
    tools: await list.tools(),
    prompts: await list.prompts(),
    resources: await list.resources(),
    templates: resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    called: called.content[0].text,
    got: got.messages[0].content.text,
    read: await read('note://readme'),
    matched: await read('note://top/one'),
    who: prompt.completion.values,
    name: template.completion.values,
  };
}

await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }), TIMEOUT);
tell({ seen: await walk() });
for (const [kind, names] of Object.entries(list)) {
  client.setNotificationHandler(`notifications/${kind}/list_changed`, async () => tell({ [kind]: await names() }));
}
client.setNotificationHandler('notifications/resources/updated', async ({ params }) =>
  tell({ read: await read(params.uri) }),
);
const heard = await client.listen(WANTED, TIMEOUT);
tell({ listening: heard.honoredFilter });
await heard.closed;
