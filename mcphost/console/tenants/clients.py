"""Ready-to-paste snippets that connect a client to a tenant."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

REVISION = "2026-07-28"
STAND_IN = "YOUR_TOKEN"

# Five lines: short enough to paste for a quick test.
_PYTHON = """\
import asyncio, mcp.client.streamable_http as http; from mcp.client import Client
client = http.create_mcp_http_client({{"Authorization": {authorization}}})
async def main():
    async with Client(http.streamable_http_client({url}, http_client=client)) as server: print(*[tool.name for tool in (await server.list_tools()).tools])
asyncio.run(main())"""


@dataclass(frozen=True, slots=True)
class Snippet:
    """What to paste, and where."""

    title: str
    where: str
    text: str


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


def curl(url: str, method: str, named: str, params: Mapping[str, Any]) -> str:
    """Return a `curl` command for one request; `named` is the value of `Mcp-Name`."""
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
        f"Mcp-Name: {named}",
    )
    lines = [f"curl {quote(url)}", *(f"-H {quote(header)}" for header in headers)]
    return " \\\n  ".join([*lines, f"-d {quote(json.dumps(body, ensure_ascii=False))}"])
