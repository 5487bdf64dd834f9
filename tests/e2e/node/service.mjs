// The TypeScript client. See tests/e2e/clients/__init__.py for what it reads and writes.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { readFileSync } from 'node:fs';

const REVISION = '2026-07-28';
const TIMEOUT = { timeout: 20_000 };
const CHANGED = 'notifications/tools/list_changed';

const { url, token } = JSON.parse(readFileSync(0, 'utf8'));
const client = new Client({ name: 'e2e', version: '1' }, { versionNegotiation: { mode: { pin: REVISION } } });
const headers = { Authorization: `Bearer ${token}` };

function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

async function tools() {
  const { tools } = await client.listTools(undefined, TIMEOUT);
  return tools.map(({ name }) => name);
}

async function walk() {
  const called = await client.callTool({ name: 'echo', arguments: { text: 'grüße' } }, TIMEOUT);
  const got = await client.getPrompt({ name: 'greeting', arguments: { who: 'Ada' } }, TIMEOUT);
  const read = await client.readResource({ uri: 'note://readme' }, TIMEOUT);
  const matched = await client.readResource({ uri: 'note://top/one' }, TIMEOUT);
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
  const { prompts } = await client.listPrompts(undefined, TIMEOUT);
  const { resources } = await client.listResources(undefined, TIMEOUT);
  const { resourceTemplates } = await client.listResourceTemplates(undefined, TIMEOUT);
  return {
    revision: client.getNegotiatedProtocolVersion(),
    tools: await tools(),
    prompts: prompts.map(({ name }) => name),
    resources: resources.map(({ uri }) => uri),
    templates: resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    called: called.content[0].text,
    got: got.messages[0].content.text,
    read: read.contents[0].text,
    matched: matched.contents[0].text,
    who: prompt.completion.values,
    name: template.completion.values,
  };
}

await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }), TIMEOUT);
tell({ seen: await walk() });
client.setNotificationHandler(CHANGED, async () => tell({ tools: await tools() }));
const heard = await client.listen({ toolsListChanged: true }, TIMEOUT);
tell({ listening: heard.honoredFilter.toolsListChanged });
await heard.closed;
