// The official TypeScript SDK's server as its documents put it on node:http, stateless:
// `node server.mjs PORT`. The guards are the ones that its README puts in front.
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

const inputSchema = z.object({ text: z.string() });
const echo = async ({ text }) => ({ content: [{ type: 'text', text }] });

// The SDK asks for a new instance for every request.
function bench() {
  const server = new McpServer({ name: 'bench', version: '1' });
  server.registerTool('echo', { description: 'Say the same again.', inputSchema }, echo);
  return server;
}

const hostIsLocal = localhostHostValidation();
const originIsLocal = localhostOriginValidation();
const serve = toNodeHandler(createMcpHandler(bench));

createServer((request, response) => {
  if (hostIsLocal(request, response) && originIsLocal(request, response)) serve(request, response);
}).listen(Number(process.argv[2]), '127.0.0.1');
