"""Ready-to-paste snippets that connect a client to a tenant."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from mcphost.console.records.call_curl import command
from mcphost.protocol.eras import REVISION

STAND_IN = "YOUR_TOKEN"

# Five lines: short enough to paste for a quick test.
_PYTHON = """\
import asyncio, mcp.client.streamable_http as http; from mcp.client import Client
client = http.create_mcp_http_client({{"Authorization": {authorization}}})
async def main():
    async with Client(http.streamable_http_client({url}, http_client=client)) as server: print(*[tool.name for tool in (await server.list_tools()).tools])
asyncio.run(main())"""

_PYTHON_PROGRAM = """\
import asyncio

import mcp.client.streamable_http as http
from mcp.client import Client

client = http.create_mcp_http_client({{"Authorization": {authorization!r}}})


async def main():
    async with Client(http.streamable_http_client({url!r}, http_client=client)) as server:
        print(*[tool.name for tool in (await server.list_tools()).tools])
{call}

asyncio.run(main())"""
_PYTHON_CALL = "        print(await server.call_tool({!r}, {!r}))\n"
_TYPESCRIPT_PROGRAM = """\
import {{ Client, StreamableHTTPClientTransport }} from '@modelcontextprotocol/client';

const headers = {headers};
const client = new Client({{ name: 'first-steps', version: '1.0.0' }});
await client.connect(new StreamableHTTPClientTransport(new URL({url}), {{ requestInit: {{ headers }} }}));
const {{ tools }} = await client.listTools();
console.log(tools.map(({{ name }}) => name).join(' '));
{call}await client.close();"""


@dataclass(frozen=True, slots=True)
class Snippet:
    """What to paste, and where."""

    title: str
    where: str
    text: str


def api_snippet(address: str, token: str) -> Snippet:
    """Return the command that reads a tenant, at its address in the administration API."""
    command = f'curl -H "Authorization: Bearer {token}" {address}'
    return Snippet("The administration API", "reads the tenant in a terminal", command)


def snippets(slug: str, url: str, token: str = STAND_IN) -> tuple[Snippet, ...]:
    """Return, for each client, the snippet that connects it to a tenant."""
    authorization = f"Bearer {token}"
    server = {"url": url, "headers": {"Authorization": authorization}}
    claude = f"claude mcp add --transport http {slug} {quote(url)} --header {quote(f'Authorization: {authorization}')}"
    code = json.dumps({"name": slug, "type": "http", **server})
    return (
        Snippet("Claude Code", "in a terminal", claude),
        Snippet("VS Code", "in a terminal", f"code --add-mcp {quote(code)}"),
        Snippet(
            "Cursor", "~/.cursor/mcp.json", json.dumps({"mcpServers": {slug: server}}, indent=2)
        ),
        Snippet(
            "Python",
            "pip install mcp",
            _PYTHON.format(authorization=json.dumps(authorization), url=json.dumps(url)),
        ),
    )


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A tool to call, with arguments that fit its schema."""

    tool: str
    arguments: Mapping[str, Any]


def setups(
    slug: str, url: str, token: str = STAND_IN, called: ExampleCall | None = None
) -> tuple[Snippet, ...]:
    """Return the set-up of each client; the programs among them also make the call."""
    authorization = f"Bearer {token}"
    terminal, vs_code, cursor, _ = snippets(slug, url, token)
    remote = {
        "command": "npx",
        "args": ["-y", "mcp-remote", url, "--header", "Authorization:${AUTHORIZATION}"],
        "env": {"AUTHORIZATION": authorization},
    }
    variable = f"MCP_TOKEN_{slug.upper().replace('-', '_')}"
    codex = (
        f"export {variable}={quote(token)}\n"
        f"codex mcp add {slug} --url {quote(url)} --bearer-token-env-var {variable}"
    )
    header = quote(f"Authorization: {authorization}")
    gemini = f"gemini mcp add --transport http {slug} {quote(url)} -H {header}"
    web = f"Name: {slug}\nRemote MCP server URL: {url}\nRequest header: Authorization: {authorization}"
    windsurf = {"serverUrl": url, "headers": {"Authorization": authorization}}
    return (
        terminal,
        Snippet(
            "Codex",
            "in a terminal; the variable must be set wherever Codex runs",
            codex,
        ),
        Snippet("Gemini CLI", "in a terminal", gemini),
        Snippet("Claude Desktop", "claude_desktop_config.json", _servers(slug, remote)),
        vs_code,
        cursor,
        Snippet("Windsurf", "~/.codeium/windsurf/mcp_config.json", _servers(slug, windsurf)),
        Snippet(
            "claude.ai",
            "Settings, Connectors, Add custom connector; request headers are a beta that some plans have",
            web,
        ),
        Snippet(
            "MCP Inspector", "in a terminal, with Node 22 or later", _inspector(url, authorization)
        ),
        Snippet("Python", "pip install mcp", _python(url, authorization, called)),
        Snippet(
            "TypeScript",
            "npm install @modelcontextprotocol/client, in a file that ends in .mjs",
            _typescript(url, authorization, called),
        ),
        Snippet("curl", "in a terminal", _curl(url, token, called)),
    )


def _servers(slug: str, server: Mapping[str, Any]) -> str:
    return json.dumps({"mcpServers": {slug: server}}, indent=2)


def _inspector(url: str, authorization: str) -> str:
    header = quote(f"Authorization: {authorization}")
    return (
        "npx @modelcontextprotocol/inspector --cli "
        f"--server-url {quote(url)} --transport http --header {header} --method tools/list"
    )


def _python(url: str, authorization: str, called: ExampleCall | None) -> str:
    call = "" if called is None else _PYTHON_CALL.format(called.tool, dict(called.arguments))
    return _PYTHON_PROGRAM.format(url=url, authorization=authorization, call=call)


def _typescript(url: str, authorization: str, called: ExampleCall | None) -> str:
    call = ""
    if called is not None:
        parameters = {"name": called.tool, "arguments": dict(called.arguments)}
        call = f"console.log(JSON.stringify(await client.callTool({json.dumps(parameters)})));\n"
    return _TYPESCRIPT_PROGRAM.format(
        url=json.dumps(url), headers=json.dumps({"Authorization": authorization}), call=call
    )


def _curl(url: str, token: str, called: ExampleCall | None) -> str:
    if called is None:
        text = curl(url, "tools/list", "", {})
    else:
        params = {"name": called.tool, "arguments": dict(called.arguments)}
        text = curl(url, "tools/call", called.tool, params)
    return text.replace(STAND_IN, token)


def curl(url: str, method: str, named: str, params: Mapping[str, Any]) -> str:
    """Return a `curl` command for one request; `named` is the value of `Mcp-Name`, if it has one."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
            **params,
        },
    }
    headers = (
        f"Authorization: Bearer {STAND_IN}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {REVISION}",
        f"Mcp-Method: {method}",
        *([f"Mcp-Name: {named}"] if named else []),
    )
    return command(url, map(quote, headers), quote(json.dumps(body, ensure_ascii=False)))
