// One run of the TypeScript client. Reads {action, url, token} from stdin, writes what it saw as JSON.
//
//   walk     connect, discover, list, call; everything in one object
//   connect  only connect: {connected} or {refused: {name, message, status, code}}
//   legacy   the same as a client that knows nothing of this revision

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { readFileSync } from 'node:fs';

const REVISION = '2026-07-28';
const TIMEOUT = { timeout: 20_000 };

const { action, url, token } = JSON.parse(readFileSync(0, 'utf8'));

function client(versionNegotiation) {
  return new Client({ name: 'e2e', version: '1' }, versionNegotiation && { versionNegotiation });
}

function transport() {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}

function seen(error) {
  const { name, message, code, status, data } = error;
  return { name, message, code, status, data };
}

async function attempt(work) {
  try {
    return { result: await work() };
  } catch (error) {
    return { error: seen(error) };
  }
}

async function connect(mode) {
  const connecting = client(mode);
  const outcome = await attempt(() => connecting.connect(transport(), TIMEOUT));
  await connecting.close();
  return outcome.error ? { refused: outcome.error } : { connected: true };
}

async function walk() {
  const connected = client({ mode: { pin: REVISION } });
  await connected.connect(transport(), TIMEOUT);
  const progress = [];
  const call = (name, args, options) =>
    attempt(() => connected.callTool({ name, arguments: args }, { ...TIMEOUT, ...options }));
  const answer = {
    revision: connected.getNegotiatedProtocolVersion(),
    server: connected.getServerVersion(),
    capabilities: connected.getServerCapabilities(),
    tools: (await connected.listTools(undefined, TIMEOUT)).tools,
    echo: await call('echo', { text: 'grüße, 世界' }),
    countdown: await call('countdown', { start: 3 }, { onprogress: (step) => progress.push(step) }),
    progress,
    weather: await call('weather', { city: 'Oslo' }),
    invalid: await call('echo', { text: 7 }),
    unknown: await call('no_such_tool', {}),
  };
  await connected.close();
  return answer;
}

const actions = {
  walk,
  connect: () => connect({ mode: { pin: REVISION } }),
  legacy: () => connect(undefined),
};

process.stdout.write(JSON.stringify(await actions[action]()));
