"""Clients connect by signing in with a browser, without a pasted token."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.e2e.callers import command
from tests.e2e.client_process import conversing
from tests.e2e.desktops import Consenter, Desktop, desktop
from tests.e2e.handmade_calls import heal
from tests.e2e.nodes import Service
from tests.e2e.processes import Server
from tests.e2e.test_older_clients import MIDDLE, NEWEST, OLDEST
from tests.e2e.test_python_client import DEMO_TOOLS, PATIENCE, every_tool, text_of

CALLBACK = "http://localhost:33419/callback"
CLAUDE_CODE = "https://claude.ai/oauth/claude-code-client-metadata"


class Keychain:
    """Where the client keeps its tokens, and what it has registered as."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def provider(
    server: Server, person: Consenter, keychain: Keychain, document: str | None
) -> OAuthClientProvider:
    """Return what signs the client's requests in: the person is its browser."""
    metadata = OAuthClientMetadata(
        client_name="A test client",
        redirect_uris=[AnyUrl(CALLBACK)],
        grant_types=["authorization_code", "refresh_token"],
    )

    async def open_page(url: str) -> None:
        await asyncio.to_thread(person.allow, url)

    async def come_back() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(person.admin.location).query)
        assert person.admin.location.startswith(CALLBACK + "?")
        return AuthorizationCodeResult(
            code=query["code"][0], state=query["state"][0], iss=query["iss"][0]
        )

    return OAuthClientProvider(server.url, metadata, keychain, open_page, come_back, document)


@asynccontextmanager
async def signed_in(server: Server, auth: OAuthClientProvider) -> AsyncIterator[Client]:
    async with (
        asyncio.timeout(PATIENCE),
        httpx2.AsyncClient(auth=auth, timeout=PATIENCE) as http,
    ):
        transport = streamable_http_client(server.url, http_client=http)
        async with Client(transport, read_timeout_seconds=PATIENCE) as client:
            yield client


@pytest.mark.parametrize("document", [None, CLAUDE_CODE])
async def test_a_client_registers_or_shows_its_document_signs_in_and_calls(
    server: Server, document: str | None
) -> None:
    person, keychain = Consenter(server), Keychain()
    auth = provider(server, person, keychain, document)
    async with signed_in(server, auth) as client:
        assert set(await every_tool(client)) >= DEMO_TOOLS
        assert text_of(await client.call_tool("echo", {"text": "signed in"})) == "signed in"
        # The client believes that its token has expired.
        auth.context.token_expiry_time = 1
        before = keychain.tokens
        assert text_of(await client.call_tool("echo", {"text": "refreshed"})) == "refreshed"
        assert before is not None
        assert keychain.tokens is not None
        assert keychain.tokens.access_token != before.access_token
        assert keychain.tokens.refresh_token != before.refresh_token
    (page,) = person.texts
    assert ("A test client" if document is None else "Claude Code") in page
    assert keychain.client is not None
    assert (keychain.client.client_id == document) == (document is not None)
    # The next start of the client needs no person.
    async with signed_in(server, provider(server, person, keychain, document)) as client:
        assert text_of(await client.call_tool("echo", {"text": "again"})) == "again"
    assert len(person.texts) == 1


SIGN_INS = (
    *(("python", ""), ("python", NEWEST), ("typescript", "")),
    *(("sdk", MIDDLE), ("mcp-1.9.4", OLDEST)),
)
"""Clients in processes of their own, and the revision that they ask for, if not for their newest."""


@pytest.mark.parametrize(("name", "revision"), SIGN_INS)
def test_a_client_signs_in_while_a_process_is_killed_and_starts_again_over_both(
    two_nodes: Service, node: object, tmp_path: Path, name: str, revision: str
) -> None:
    consenter = Consenter(two_nodes.server)

    def consent(url: str) -> None:
        """The process that the client has seen last may be the one that is killed."""
        two_nodes.first.kill()
        two_nodes.proxy.wait_for(two_nodes.second.port)
        consenter(url)

    with desktop(tmp_path / "home", consent) as person:
        _connect(person, two_nodes.server, name, revision)
        heal(two_nodes)
        before = dict(two_nodes.proxy.served)
        _connect(person, two_nodes.server, name, revision)
    assert person.faults == []
    assert len(person.pages) == 1
    for process in (two_nodes.first, two_nodes.second):
        assert two_nodes.proxy.served[process.port] > before[process.port]


def _connect(person: Desktop, server: Server, name: str, revision: str) -> None:
    asked = {"url": server.url, "tokens": str(person.home / "tokens.json")}
    if revision:
        asked["revision"] = revision
    with conversing(person.command(command(name)), person.home, **asked) as talk:
        met = talk.hear("met")
        assert set(met["tools"]) >= DEMO_TOOLS
        assert met["revision"] == (revision or "2026-07-28")
        talk.say({"call": "echo", "arguments": {"text": "signed in"}})
        assert talk.hear("done")["content"][0]["text"] == "signed in"
        assert talk.end() == 0
