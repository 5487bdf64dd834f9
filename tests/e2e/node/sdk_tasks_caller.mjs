// The TypeScript SDK before 2.0 with its experimental tasks.
//
// It reads and writes what tests/e2e/clients/python1_tasks_caller.py does.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { answer, hear, tell } from './person.mjs';

const TIMEOUT = { timeout: 60_000 };

const { url, token } = await hear();
let revision;

class Transport extends StreamableHTTPClientTransport {
  setProtocolVersion(version) {
    revision = version;
    super.setProtocolVersion(version);
  }
}

const client = new Client({ name: 'e2e', version: '1' }, { capabilities: { elicitation: { form: {}, url: {} } } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new Transport(new URL(url), { requestInit: { headers } }), TIMEOUT);
const { tools } = await client.listTools(undefined, TIMEOUT);
const able = tools.filter(({ execution }) => execution);
const support = Object.fromEntries(able.map(({ name, execution }) => [name, execution.taskSupport]));
tell({ met: { revision, tasks: client.getServerCapabilities().tasks ?? null, support } });

const { tasks } = client.experimental;

// What the library yields while it follows a task.
function followed(name, args) {
  return tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { ...TIMEOUT, task: {} });
}

async function begin(name, args) {
  for await (const { type, task, error } of followed(name, args)) {
    if (type === 'taskCreated') return { begun: task.taskId };
    throw error;
  }
}

async function call(name, args) {
  const states = [];
  for await (const message of followed(name, args)) {
    if (message.type === 'taskStatus') states.push(message.task.status);
    if (message.type === 'error') throw message.error;
    if (message.type === 'result') return { done: message.result, states };
  }
}

async function everyTask() {
  const ids = [];
  let cursor;
  do {
    const page = await tasks.listTasks(cursor, TIMEOUT);
    ids.push(...page.tasks.map(({ taskId }) => taskId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return ids;
}

async function perform(wanted) {
  if (wanted.call) return call(wanted.call, wanted.arguments);
  if (wanted.plain) return { done: await client.callTool({ name: wanted.plain, arguments: wanted.arguments }, undefined, TIMEOUT) };
  if (wanted.begin) return begin(wanted.begin, wanted.arguments);
  if (wanted.look) return { seen: await tasks.getTask(wanted.look, TIMEOUT) };
  if (wanted.finish) return { done: await tasks.getTaskResult(wanted.finish, CallToolResultSchema, TIMEOUT) };
  if (wanted.cancel) return { seen: await tasks.cancelTask(wanted.cancel, TIMEOUT) };
  if (wanted.list) return { listed: await everyTask() };
  throw new Error(`unknown: ${JSON.stringify(wanted)}`);
}

for (let wanted = await hear(); wanted !== null; wanted = await hear()) {
  try {
    tell(await perform(wanted));
  } catch (error) {
    tell({ raised: `${error.name}: ${error.message}` });
  }
}
await client.close();
