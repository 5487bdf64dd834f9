"""Ready-to-paste lines that connect a client to a tenant."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

REVISION = "2026-07-28"
STAND_IN = "YOUR_TOKEN"

_PYTHON = """\
import asyncio, httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

async def main():
    http = httpx2.AsyncClient(headers={{"Authorization": {authorization}}})
    async with Client(streamable_http_client({url}, http_client=http)) as client:
        for tool in (await client.list_tools()).tools:
            print(tool.name, "-", tool.title)

asyncio.run(main())"""


@dataclass(frozen=True, slots=True)
class Snippet:
    """What to paste, and where."""

    title: str
    where: str
    text: str


def snippets(slug: str, url: str, token: str = STAND_IN) -> tuple[Snippet, ...]:
    """How each client is told of a tenant."""
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


def curl(url: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """One call of a tool, by hand."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
            "name": tool,
            "arguments": arguments,
        },
    }
    headers = (
        f"Authorization: Bearer {STAND_IN}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {REVISION}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {tool}",
    )
    lines = [f"curl {quote(url)}", *(f"-H {quote(header)}" for header in headers)]
    return " \\\n  ".join([*lines, f"-d {quote(json.dumps(body, ensure_ascii=False))}"])
