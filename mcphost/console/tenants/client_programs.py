"""Programs of the Python and TypeScript SDKs that connect to a tenant: to paste into a file and run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcphost.protocol.revisions import REVISIONS
from mcphost.protocol.schemas import ParamHeader

_PYTHON: Final = """\
import asyncio

import mcp.client.streamable_http as http
from mcp.client import Client
{answer}
client = http.create_mcp_http_client({{"Authorization": {authorization!r}}})


async def main():
    async with Client(http.streamable_http_client({url!r}, http_client=client){options}) as server:
        print(*[tool.name for tool in (await server.list_tools()).tools])
{call}

asyncio.run(main())"""
_PYTHON_ANSWER: Final = """\
from mcp_types import ElicitResult

responses = iter({!r})


async def answer(context, params):
    print(params.message)
    return ElicitResult(**next(responses))

"""
_PYTHON_CALL: Final = "print(await server.call_tool({!r}, {!r}))\n"
_PYTHON_SIGN_IN: Final = """\
import asyncio
import webbrowser
from urllib.parse import parse_qsl, urlsplit

import mcp.client.streamable_http as http
from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

URL = {url!r}
PORT = 8642
CLIENT = OAuthClientMetadata(client_name="first-steps", redirect_uris=[f"http://127.0.0.1:{{PORT}}/callback"])


class Storage:  # keeps tokens until the program ends: store them to sign in once only
    tokens = client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


async def main():
    redirect = asyncio.get_running_loop().create_future()

    async def receive(reader, writer):  # the browser comes back
        query = dict(parse_qsl(urlsplit((await reader.readline()).split()[1].decode()).query))
        writer.write(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nYou can close this window.")
        writer.close()
        if {{"code", "error"}} & query.keys() and not redirect.done():
            redirect.set_result(query)

    async def open_browser(address):
        print("Sign in at", address)
        await asyncio.to_thread(webbrowser.open, address)

    async def wait_for_code():
        query = await redirect
        if "code" not in query:
            raise SystemExit(f"The sign-in ended: {{query['error']}}")
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    auth = OAuthClientProvider(URL, CLIENT, Storage(), open_browser, wait_for_code)
    listener = await asyncio.start_server(receive, "127.0.0.1", PORT)
    async with listener, http.create_mcp_http_client(auth=auth) as client:
        async with Client(http.streamable_http_client(URL, http_client=client)) as server:
            print(*[tool.name for tool in (await server.list_tools()).tools])
{call}

asyncio.run(main())"""
_TYPESCRIPT: Final = """\
import {{ Client, StreamableHTTPClientTransport }} from '@modelcontextprotocol/client';

const headers = {headers};
const client = new Client({{ name: 'first-steps', version: '1.0.0' }}{options});
{answer}await client.connect(new StreamableHTTPClientTransport(new URL({url}), {{ requestInit: {{ headers }} }}));
{use}"""
_TYPESCRIPT_ANSWER: Final = """\
const responses = {};
client.setRequestHandler('elicitation/create', async ({{ params }}) => {{
  console.log(params.message);
  return responses.shift();
}});
"""
_TYPESCRIPT_SIGN_IN: Final = """\
import {{ createServer }} from 'node:http';
import {{ Client, StreamableHTTPClientTransport, UnauthorizedError }} from '@modelcontextprotocol/client';

const url = new URL({url});
const callback = 'http://127.0.0.1:8642/callback';
const stored = {{}}; // until the program ends: store it to sign in once only
const authProvider = {{
  redirectUrl: callback,
  clientMetadata: {{ client_name: 'first-steps', redirect_uris: [callback] }},
  clientInformation: () => stored.client,
  saveClientInformation: client => {{ stored.client = client; }},
  tokens: () => stored.tokens,
  saveTokens: tokens => {{ stored.tokens = tokens; }},
  codeVerifier: () => stored.verifier,
  saveCodeVerifier: verifier => {{ stored.verifier = verifier; }},
  discoveryState: () => stored.discovered,
  saveDiscoveryState: discovered => {{ stored.discovered = discovered; }},
  redirectToAuthorization: address => console.log(`Sign in at ${{address}}`)
}};

const listener = createServer();
const redirect = new Promise(resolve => listener.on('request', (request, response) => {{
  response.end('You can close this window.');
  const {{ searchParams }} = new URL(request.url, callback);
  if (searchParams.has('code') || searchParams.has('error')) resolve(searchParams);
}}));
await new Promise(resolve => listener.listen(8642, '127.0.0.1', resolve));

async function connect() {{
  const client = new Client({{ name: 'first-steps', version: '1.0.0' }});
  const transport = new StreamableHTTPClientTransport(url, {{ authProvider }});
  try {{
    await client.connect(transport);
    return client;
  }} catch (error) {{
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(await redirect);
    return connect();
  }}
}}

const client = await connect();
listener.close();
listener.closeAllConnections();
{use}"""
_TYPESCRIPT_USE: Final = """\
const { tools } = await client.listTools();
console.log(tools.map(({ name }) => name).join(' '));
"""


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A tool to call, with arguments that fit its schema.

    `responses` answer the forms and pages that it asks for, in this order. `revision` is what the client
    speaks, empty for its default; `capabilities` is what it declares to be asked.
    """

    tool: str
    arguments: Mapping[str, Any]
    mirrored: Sequence[ParamHeader] = ()
    responses: Sequence[Mapping[str, Any]] = ()
    revision: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)


def python(url: str, authorization: str, called: ExampleCall | None) -> str:
    """Return a program that sends a token, lists the tools and makes the call."""
    call = _python_call(called, indent=8)
    answer, options = "", ""
    if called is not None and called.responses:
        answer = _PYTHON_ANSWER.format([dict(response) for response in called.responses])
        options = ", elicitation_callback=answer"
    if called is not None and called.revision in REVISIONS:
        options += ', mode="legacy"'
    return _PYTHON.format(
        url=url, authorization=authorization, call=call, answer=answer, options=options
    )


def python_sign_in(url: str, called: ExampleCall | None) -> str:
    """Return a program that signs in with a browser, lists the tools and makes the call."""
    return _PYTHON_SIGN_IN.format(url=url, call=_python_call(called, indent=12))


def typescript(url: str, authorization: str, called: ExampleCall | None) -> str:
    """Return a program that sends a token, lists the tools and makes the call."""
    headers = json.dumps({"Authorization": authorization})
    answer = ""
    if called is not None and called.responses:
        answer = _TYPESCRIPT_ANSWER.format(json.dumps(list(called.responses)))
    return _TYPESCRIPT.format(
        url=json.dumps(url),
        headers=headers,
        use=_typescript_use(called),
        answer=answer,
        options=_typescript_options(called),
    )


def typescript_sign_in(url: str, called: ExampleCall | None) -> str:
    """Return a program that signs in with a browser, lists the tools and makes the call."""
    return _TYPESCRIPT_SIGN_IN.format(url=json.dumps(url), use=_typescript_use(called))


def _python_call(called: ExampleCall | None, indent: int) -> str:
    if called is None:
        return ""
    return " " * indent + _PYTHON_CALL.format(called.tool, dict(called.arguments))


def _typescript_options(called: ExampleCall | None) -> str:
    """The second argument of the client, with a comma; empty if all of it is the default."""
    if called is None or not called.revision:
        return ""
    options: dict[str, Any] = {}
    if called.responses:
        options["capabilities"] = {"elicitation": called.capabilities.get("elicitation", {})}
    if called.revision in REVISIONS:
        options["supportedProtocolVersions"] = [called.revision]
    else:
        options["versionNegotiation"] = {"mode": "auto"}
    return f", {json.dumps(options)}"


def _typescript_use(called: ExampleCall | None) -> str:
    call = ""
    if called is not None:
        parameters = {"name": called.tool, "arguments": dict(called.arguments)}
        call = f"console.log(JSON.stringify(await client.callTool({json.dumps(parameters)})));\n"
    return f"{_TYPESCRIPT_USE}{call}await client.close();"
