"""Ready-to-paste snippets that connect a client to a tenant, with the headers that all of them send."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final, NamedTuple

from mcphost.console.records.call_curl import (
    ALL_CAPABILITIES,
    command,
    request_body,
    request_headers,
    request_meta,
    session_commands,
)
from mcphost.console.tenants import client_programs as programs
from mcphost.console.tenants.client_programs import ExampleCall
from mcphost.protocol.revisions import REVISIONS
from mcphost.protocol.schemas import ParamHeader

STAND_IN = "YOUR_TOKEN"
_COMMON = tuple(
    map(
        quote,
        (
            f"Authorization: Bearer {STAND_IN}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
        ),
    )
)
"""The headers of all requests, as shell words."""
TERMINAL: Final = "in a terminal"
NODE: Final = "in a terminal, with Node 22 or later"
PIP: Final = "pip install mcp"
NPM: Final = "npm install @modelcontextprotocol/client, in a file that ends in .mjs"
OPENS_BROWSER: Final = "It opens a browser."

# Five lines: short enough to paste for a quick test.
_PYTHON = """\
import asyncio, mcp.client.streamable_http as http; from mcp.client import Client
client = http.create_mcp_http_client({{"Authorization": {authorization}}})
async def main():
    async with Client(http.streamable_http_client({url}, http_client=client)) as server: print(*[tool.name for tool in (await server.list_tools()).tools])
asyncio.run(main())"""


@dataclass(frozen=True, slots=True)
class Snippet:
    """What to paste, and where; `then` is what to do after that, in a sentence."""

    title: str
    where: str
    text: str
    then: str = ""


class Setup(NamedTuple):
    """How to connect one client: by signing in with a browser, with a token, or either way.

    `anchor` is its place on the page.
    """

    title: str
    anchor: str
    sign_in: Snippet | None
    token: Snippet | None


class SetupTarget(NamedTuple):
    """The tenant that clients connect to, the token of the snippets, and the call that programs make."""

    slug: str
    url: str
    token: str
    called: ExampleCall | None

    @property
    def authorization(self) -> str:
        return f"Bearer {self.token}"

    @property
    def header(self) -> str:
        return f"Authorization: {self.authorization}"


def api_snippet(address: str, token: str) -> Snippet:
    """Return the command that reads a tenant, at its address in the administration API."""
    command = f'curl -H "Authorization: Bearer {token}" {address}'
    return Snippet("The administration API", "reads the tenant in a terminal", command)


def snippets(slug: str, url: str, token: str = STAND_IN) -> tuple[Snippet, ...]:
    """Return, for some clients, the snippet that connects it to a tenant with a token."""
    target = SetupTarget(slug, url, token, None)
    editors = (_claude_code(target), _vs_code(target), _cursor(target))
    lines = _PYTHON.format(authorization=json.dumps(target.authorization), url=json.dumps(url))
    of_editors = [setup.token for setup in editors if setup.token is not None]
    return (*of_editors, Snippet("Python", PIP, lines))


def setups(
    slug: str, url: str, token: str = STAND_IN, called: ExampleCall | None = None
) -> tuple[Setup, ...]:
    """Return the set-up of each client; the programs among them also make the call."""
    target = SetupTarget(slug, url, token, called)
    return (
        _claude_code(target),
        _claude_ai(target),
        _chatgpt(target),
        _vs_code(target),
        _cursor(target),
        _codex(target),
        _gemini(target),
        _windsurf(target),
        _claude_desktop(target),
        _inspector(target),
        _python(target),
        _typescript(target),
        _curl(target),
    )


def _claude_code(target: SetupTarget) -> Setup:
    add = f"claude mcp add --transport http {target.slug} {quote(target.url)}"
    then = f"Then run `claude mcp login {target.slug}`, or `/mcp` in a session. {OPENS_BROWSER}"
    with_token = f"{add} --header {quote(target.header)}"
    return _setup("Claude Code", "claude-code", (TERMINAL, add, then), (TERMINAL, with_token))


def _claude_ai(target: SetupTarget) -> Setup:
    where = "Settings, Connectors, Add custom connector"
    text = f"Name: {target.slug}\nRemote MCP server URL: {target.url}"
    beta = f"{where}; request headers are a beta that some plans have"
    then = "Then choose Connect. Its servers call this address, so it must be reachable from the internet."
    return _setup(
        "claude.ai",
        "claude-ai",
        (where, text, then),
        (beta, f"{text}\nRequest header: {target.header}"),
    )


def _chatgpt(target: SetupTarget) -> Setup:
    where = "Settings, Apps & Connectors, Advanced settings, Developer mode; then Create"
    text = f"Name: {target.slug}\nMCP server URL: {target.url}\nAuthentication: OAuth"
    then = "Its servers call this address, so it must be reachable from the internet. It takes no tokens."
    return _setup("ChatGPT", "chatgpt", (where, text, then))


def _vs_code(target: SetupTarget) -> Setup:
    server = {"name": target.slug, "type": "http", "url": target.url}
    then = f"Then start the server in the list of MCP servers. {OPENS_BROWSER}"
    return _setup(
        "VS Code",
        "vs-code",
        (TERMINAL, f"code --add-mcp {quote(json.dumps(server))}", then),
        (TERMINAL, f"code --add-mcp {quote(json.dumps({**server, **_headers(target)}))}"),
    )


def _cursor(target: SetupTarget) -> Setup:
    where, server = "~/.cursor/mcp.json", {"url": target.url}
    then = f"Then choose Connect beside the server in Settings, MCP. {OPENS_BROWSER}"
    return _setup(
        "Cursor",
        "cursor",
        (where, _servers(target, server), then),
        (where, _servers(target, {**server, **_headers(target)})),
    )


def _codex(target: SetupTarget) -> Setup:
    add = f"codex mcp add {target.slug} --url {quote(target.url)}"
    variable = f"MCP_TOKEN_{target.slug.upper().replace('-', '_')}"
    with_token = f"export {variable}={quote(target.token)}\n{add} --bearer-token-env-var {variable}"
    then = f"{OPENS_BROWSER} To sign in again later, run `codex mcp login {target.slug}`."
    return _setup(
        "Codex",
        "codex",
        (TERMINAL, add, then),
        ("in a terminal; the variable must be set wherever Codex runs", with_token),
    )


def _gemini(target: SetupTarget) -> Setup:
    add = f"gemini mcp add --transport http {target.slug} {quote(target.url)}"
    then = f"Then enter `/mcp auth {target.slug}` in Gemini CLI. {OPENS_BROWSER}"
    with_token = f"{add} -H {quote(target.header)}"
    return _setup("Gemini CLI", "gemini-cli", (TERMINAL, add, then), (TERMINAL, with_token))


def _windsurf(target: SetupTarget) -> Setup:
    where, server = "~/.codeium/windsurf/mcp_config.json", {"serverUrl": target.url}
    return _setup(
        "Windsurf",
        "windsurf",
        (where, _servers(target, server), f"Then reload the MCP servers. {OPENS_BROWSER}"),
        (where, _servers(target, {**server, **_headers(target)})),
    )


def _claude_desktop(target: SetupTarget) -> Setup:
    where = "claude_desktop_config.json; it needs Node"
    remote = {"command": "npx", "args": ["-y", "mcp-remote", target.url]}
    with_token = {
        "command": "npx",
        "args": [*remote["args"], "--header", "Authorization:${AUTHORIZATION}"],
        "env": {"AUTHORIZATION": target.authorization},
    }
    then = (
        "Then restart Claude Desktop. mcp-remote opens a browser. A server that is reachable from the "
        "internet can be added as in claude.ai instead."
    )
    return _setup(
        "Claude Desktop",
        "claude-desktop",
        (where, _servers(target, remote), then),
        (where, _servers(target, with_token)),
    )


def _inspector(target: SetupTarget) -> Setup:
    inspect = (
        "npx @modelcontextprotocol/inspector --cli "
        f"--server-url {quote(target.url)} --transport http"
    )
    lists = "--method tools/list"
    return _setup(
        "MCP Inspector",
        "inspector",
        (NODE, f"{inspect} {lists}", "It shows the address to open in a browser."),
        (NODE, f"{inspect} --header {quote(target.header)} {lists}"),
    )


def _python(target: SetupTarget) -> Setup:
    return _setup(
        "Python",
        "python",
        (PIP, programs.python_sign_in(target.url, target.called), OPENS_BROWSER),
        (PIP, programs.python(target.url, target.authorization, target.called)),
    )


def _typescript(target: SetupTarget) -> Setup:
    then = "It shows the address to open in a browser."
    return _setup(
        "TypeScript",
        "typescript",
        (NPM, programs.typescript_sign_in(target.url, target.called), then),
        (NPM, programs.typescript(target.url, target.authorization, target.called)),
    )


def _curl(target: SetupTarget) -> Setup:
    if target.called is None:
        text = curl(target.url, "tools/list", "", {})
    else:
        params = {"name": target.called.tool, "arguments": dict(target.called.arguments)}
        mirrored = target.called.mirrored
        text = curl(target.url, "tools/call", target.called.tool, params, mirrored)
    return _setup("curl", "curl", None, (TERMINAL, text.replace(STAND_IN, target.token)))


def _setup(
    title: str,
    anchor: str,
    sign_in: tuple[str, str, str] | None,
    token: tuple[str, str] | None = None,
) -> Setup:
    return Setup(
        title,
        anchor,
        None if sign_in is None else Snippet(title, *sign_in),
        None if token is None else Snippet(title, *token),
    )


def _headers(target: SetupTarget) -> Mapping[str, Any]:
    return {"headers": {"Authorization": target.authorization}}


def _servers(target: SetupTarget, server: Mapping[str, Any]) -> str:
    return json.dumps({"mcpServers": {target.slug: server}}, indent=2)


def curl(
    url: str,
    method: str,
    named: str,
    params: Mapping[str, Any],
    mirrored: Sequence[ParamHeader] = (),
    capabilities: Mapping[str, Any] = ALL_CAPABILITIES,
) -> str:
    """Return a `curl` command for one request, of a client that can be asked anything; `named` is the value of `Mcp-Name`,
    if it has one, and `mirrored` are the arguments that the tool wants in headers too."""
    headers = (*_COMMON, *request_headers(method, named, params.get("arguments"), mirrored))
    body = request_body(method, {**request_meta(dict(capabilities)), **params})
    return command(url, headers, quote(body))


def calling_programs(url: str, called: ExampleCall) -> tuple[Snippet, ...]:
    """Return what makes a call in a client's revision: for `curl`, Python and TypeScript, with a stand-in for the token.

    `curl` makes the first request only; the programs answer what the tool asks.
    """
    authorization = f"Bearer {STAND_IN}"
    return (
        Snippet("curl", TERMINAL, _call_with_curl(url, called)),
        Snippet("Python", PIP, programs.python(url, authorization, called)),
        Snippet("TypeScript", NPM, programs.typescript(url, authorization, called)),
    )


def _call_with_curl(url: str, called: ExampleCall) -> str:
    params = {"name": called.tool, "arguments": dict(called.arguments)}
    capabilities = dict(called.capabilities)
    revision = REVISIONS.get(called.revision)
    if revision is None:
        return curl(url, "tools/call", called.tool, params, called.mirrored, capabilities)
    body = quote(request_body("tools/call", params))
    return session_commands(url, _COMMON, revision, capabilities, body)
