"""Clients of sessions without HTTP: their calls, and readers that keep what they are shown."""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any
from uuid import uuid4

import orjson
from django.utils import timezone

from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.headers import Headers
from mcphost.protocol.legacy.opening import LegacyResponse
from mcphost.protocol.revisions import REVISIONS, Era
from mcphost.routing import process
from mcphost.runtime.call import Principal
from mcphost.serving import lookups
from mcphost.serving.context import NO_QUOTA, ClientSession, Incoming
from mcphost.serving.database import in_database
from mcphost.serving.legacy import answers
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy import session as sessions
from mcphost.serving.legacy.call import SessionCall
from mcphost.serving.legacy.replay import follow
from tests.cast import Cast, Person

PATIENCE = 30.0
EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}


async def true(there: Callable[[], object]) -> None:
    """Wait until `there` returns true. It is called in a database thread."""
    async with asyncio.timeout(PATIENCE):
        while not await in_database(there):
            pass


class Shown:
    """Implements `serving.ports.Reader`: keeps what it is shown, and can wait for it."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.ended = False
        self.retry: int | None = None
        self.closed = False
        self._news = asyncio.Event()

    def write(self, event_id: str, message: bytes) -> None:
        assert not self.ended
        self.ids.append(event_id)
        self.messages.append(orjson.loads(message) if message else {})
        self._news.set()

    def end(self, retry_ms: int | None = None) -> None:
        if not self.ended:
            self.ended, self.closed, self.retry = True, True, retry_ms
        self._news.set()

    async def until(self, there: Callable[["Shown"], object]) -> "Shown":
        async with asyncio.timeout(PATIENCE):
            while not there(self):
                self._news.clear()
                await self._news.wait()
        return self

    async def whole(self) -> list[dict[str, Any]]:
        """All messages, once the stream has ended."""
        await self.until(lambda shown: shown.ended)
        return self.messages

    async def asked(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait for the given number of requests to the client, and return them."""
        await self.until(lambda shown: len(shown.requests) >= count)
        return self.requests

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [one for one in self.messages if "method" in one and "id" in one]

    def of(self, method: str) -> list[dict[str, Any]]:
        """The messages of a method so far."""
        return [one for one in self.messages if one.get("method") == method]


class Caller:
    """One client of one tenant, with a session."""

    def __init__(
        self, cast: Cast, session: ClientSession, incoming: Incoming, session_token: str
    ) -> None:
        self.cast = cast
        self.session = session
        self._session_token = session_token
        self._incoming = incoming
        self._ids = count(1)

    @classmethod
    async def at(
        cls,
        cast: Cast,
        person: Person | None = None,
        revision: str = "2025-11-25",
        capabilities: Mapping[str, Any] = EVERYTHING,
    ) -> "Caller":
        process.start()
        bearer = (person or cast.owner).mcp_token
        principal = await _principal_of(bearer)
        said = {"clientInfo": {"name": "tests", "version": "1"}, "capabilities": capabilities}
        session, token = await sessions.begin(principal, REVISIONS[revision], said)
        exchange = Exchange(0, "ping", {}, Meta(), Era.LEGACY, revision)
        incoming = Incoming(
            uuid4(),
            exchange,
            Headers([]),
            principal,
            cast.acme,
            NO_QUOTA,
            "::1",
            10,
            "",
            session,
        )
        return cls(cast, session, incoming, token)

    @property
    def principal(self) -> Principal:
        return self._incoming.principal

    async def present(self, bearer: str) -> None:
        """Present another credential from now on, whose principal the session must be of."""
        principal = await _principal_of(bearer)
        self.session = await sessions.find(principal, self._session_token)
        self._incoming = self._incoming._replace(principal=principal)

    def request(self, method: str, params: Mapping[str, Any], token: str | None = None) -> Incoming:
        meta = Meta(
            progress_token=token,
            log_level="info",
            client_info={"name": "tests", "version": "1"},
            capabilities=self.session.client.capabilities,
        )
        exchange = Exchange(
            next(self._ids), method, dict(params), meta, Era.LEGACY, self.session.revision
        )
        return self._incoming._replace(exchange=exchange, http_request_id=uuid4())

    def call(self, tool: str, token: str | None = None, **arguments: Any) -> SessionCall:
        params = {"name": tool, "arguments": arguments}
        return calls.begin(self.request("tools/call", params, token), self.session)

    async def shown(self, method: str, params: Mapping[str, Any]) -> Shown:
        """Send a request that streams; return what is shown of it."""
        return await _shown(calls.begin(self.request(method, params), self.session))

    async def streamed(self, tool: str, token: str | None = None, **arguments: Any) -> Shown:
        """Call a tool that streams; return what is shown of the call."""
        return await _shown(self.call(tool, token, **arguments))

    async def answer(self, request: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Send an input response to a request of the server."""
        await self.respond(LegacyResponse(request["id"], result, None))

    async def respond(self, response: LegacyResponse) -> None:
        await answers.take(self.session, self._incoming.principal, response)

    async def resumed(self, last_event_id: str) -> Shown:
        """Resume a stream; return what is shown once it has ended."""
        shown = Shown()
        async with asyncio.timeout(PATIENCE):
            await follow(self.session, last_event_id, shown)
        return shown

    def following(self, last_event_id: str) -> tuple[Shown, "asyncio.Task[None]"]:
        """Resume a stream in a task; return what is shown and the task."""
        shown = Shown()
        return shown, asyncio.create_task(follow(self.session, last_event_id, shown))


async def _principal_of(bearer: str) -> Principal:
    authenticated = await lookups.authenticated(bearer, "acme", timezone.now())
    assert authenticated is not None
    return authenticated.principal


async def _shown(call: SessionCall) -> Shown:
    async with asyncio.timeout(PATIENCE):
        assert await call.settled() is None
    shown = Shown()
    call.outgoing.attach(shown)
    return shown


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}
