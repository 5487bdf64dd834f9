"""The official Python client connects by signing in with a browser, without a pasted token."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from tests.e2e.admin import Admin
from tests.e2e.processes import Server
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


class Person:
    """A person at the browser that the client opens, who allows what it asks for."""

    def __init__(self, server: Server) -> None:
        password = (server.home / "admin-password").read_text().strip()
        self.admin = Admin(urlsplit(server.base).port or 80, password)
        self.pages: list[str] = []

    async def open(self, url: str) -> None:
        self.pages.append(await asyncio.to_thread(self.admin.allow, url))

    async def come_back(self) -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(self.admin.location).query)
        assert self.admin.location.startswith(CALLBACK + "?")
        return AuthorizationCodeResult(
            code=query["code"][0], state=query["state"][0], iss=query["iss"][0]
        )


@asynccontextmanager
async def signed_in(
    server: Server, person: Person, keychain: Keychain, document: str | None = None
) -> AsyncIterator[Client]:
    metadata = OAuthClientMetadata(
        client_name="A test client",
        redirect_uris=[AnyUrl(CALLBACK)],
        grant_types=["authorization_code", "refresh_token"],
    )
    provider = OAuthClientProvider(
        server.url, metadata, keychain, person.open, person.come_back, document
    )
    async with (
        asyncio.timeout(PATIENCE),
        httpx2.AsyncClient(auth=provider, timeout=PATIENCE) as http,
    ):
        transport = streamable_http_client(server.url, http_client=http)
        async with Client(transport, read_timeout_seconds=PATIENCE) as client:
            yield client


@pytest.mark.parametrize("document", [None, CLAUDE_CODE])
async def test_a_client_registers_or_shows_its_document_signs_in_and_calls(
    server: Server, document: str | None
) -> None:
    person, keychain = Person(server), Keychain()
    async with signed_in(server, person, keychain, document) as client:
        assert set(await every_tool(client)) >= DEMO_TOOLS
        assert text_of(await client.call_tool("echo", {"text": "signed in"})) == "signed in"
    (page,) = person.pages
    assert ("A test client" if document is None else "Claude Code") in page
    assert keychain.client is not None
    assert (keychain.client.client_id == document) == (document is not None)
    # The next start of the client needs no person.
    async with signed_in(server, person, keychain, document) as client:
        assert text_of(await client.call_tool("echo", {"text": "again"})) == "again"
    assert len(person.pages) == 1
