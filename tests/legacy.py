"""A client of the session-based revisions that calls this process's application through ASGI.

It validates every message that it receives against the schema of its revision.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from mcphost.protocol.revisions import REVISIONS
from tests.mcp import Exchange, Reply
from tests.wire import check_batch, check_message, check_response

ACCEPT = "application/json, text/event-stream"


def message(method: str, params: Mapping[str, Any] | None = None, id: Any = None) -> dict[str, Any]:
    """Return a request, or without an `id` a notification."""
    sent: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        sent["id"] = id
    if params is not None:
        sent["params"] = params
    return sent


def calling(tool: str, arguments: Mapping[str, Any] | None = None, id: Any = 1, **meta: Any) -> Any:
    """Return a `tools/call`; other keyword arguments become its `_meta`."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return message("tools/call", params, id)


def initializing(revision: str, id: Any = 0, **capabilities: Any) -> dict[str, Any]:
    """Return the request that begins a session."""
    client = {"name": "tests", "version": "1"}
    said = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}
    return message("initialize", said, id)


@dataclass
class Event:
    """One event of a stream."""

    id: str = ""
    data: bytes = b""
    retry: int | None = None

    @classmethod
    def read(cls, frame: bytes) -> "Event":
        event = cls()
        for line in frame.split(b"\n"):
            name, _, value = line.partition(b": ")
            if name == b"id":
                event.id = value.decode()
            elif name == b"retry":
                event.retry = int(value)
            elif name == b"data":
                event.data += value
        return event


class Posted(Exchange):
    """One HTTP request of a session in progress."""

    def __init__(self, path: str, headers: Mapping[str, str], verb: str, revision: str) -> None:
        super().__init__(path, headers, verb)
        self.reply.revision = revision
        self.last_id = ""
        self.retry: int | None = None
        self.ids: list[str] = []

    @property
    def unread(self) -> bytes:
        """The received bytes that were not read as events yet, without comments."""
        return self.reply.raw[self._read :].replace(b":\n\n", b"")

    async def upcoming(self) -> Event:
        """Return the next event, skipping comments."""
        while (end := self.reply.raw.find(b"\n\n", self._read)) < 0:
            await self.event()
        frame, self._read = self.reply.raw[self._read : end], end + 2
        if frame.startswith(b":"):
            return await self.upcoming()
        event = Event.read(frame)
        if event.id:
            self.last_id = event.id
            self.ids.append(event.id)
        self.retry = event.retry if event.retry is not None else self.retry
        return event

    async def message(self) -> dict[str, Any]:
        """Return the next message, validated against the schema."""
        event = await self.upcoming()
        if not event.data:
            return await self.message()
        found: dict[str, Any] = orjson.loads(event.data)
        if "method" in found or not self.reply.method:
            return check_message(found, revision=self.reply.revision)
        return check_response(self.reply.method, found, self.reply.revision)


@dataclass
class Session:
    """A client's session with a tenant. Without an `id` it has not begun, or has ended."""

    tenant: str
    token: str | None
    revision: str
    id: str | None = None
    server: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"/t/{self.tenant}/mcp"

    def headers(self, **other: str) -> dict[str, str]:
        """Return the headers that such a client sends, without empty ones."""
        wanted = {
            "host": "localhost",
            "accept": ACCEPT,
            "content-type": "application/json",
            "authorization": f"Bearer {self.token}" if self.token else "",
            "mcp-session-id": self.id or "",
            "mcp-protocol-version": self.revision if REVISIONS[self.revision].header else "",
            **{name.replace("_", "-"): value for name, value in other.items()},
        }
        return {name: value for name, value in wanted.items() if value}

    def exchange(self, body: Any, verb: str = "POST", **headers: str) -> Posted:
        """Begin an HTTP request; the caller reads its response."""
        posted = Posted(self.path, self.headers(**headers), verb, self.revision)
        posted.reply.method = body.get("method", "") if isinstance(body, dict) else ""
        posted.write(body if isinstance(body, bytes) else orjson.dumps(body))
        return posted

    @asynccontextmanager
    async def begun(self, body: Any, verb: str = "POST", **headers: str) -> AsyncIterator[Posted]:
        """Begin an HTTP request, read its response inside the block, then disconnect."""
        posted = self.exchange(body, verb, **headers)
        try:
            yield posted
        finally:
            posted.hang_up()

    async def send(self, body: Any, verb: str = "POST", **headers: str) -> Reply:
        """Send an HTTP request; return its whole response, validated."""
        reply = await self.exchange(body, verb, **headers).done()
        return reply.check() if reply.raw and not isinstance(body, list) else reply

    async def batch(self, *sent: Any, status: int = 200) -> dict[Any, dict[str, Any]]:
        """Send a batch; return its responses by id."""
        reply = await self.send(list(sent))
        assert reply.status == status
        return {one["id"]: one for one in answers_of(reply)}

    async def ask(self, method: str, params: Any = None, id: Any = 1) -> Reply:
        """Send a request."""
        return await self.send(message(method, params, id))

    async def call(self, tool: str, arguments: Any = None, id: Any = 1, **meta: Any) -> Reply:
        """Call a tool."""
        return await self.send(calling(tool, arguments, id, **meta))

    async def notify(self, method: str, params: Any = None) -> Reply:
        """Send a notification, and check that it is accepted."""
        reply = await self.send(message(method, params))
        assert (reply.status, reply.raw) == (202, b"")
        return reply

    @asynccontextmanager
    async def listening(self, **headers: str) -> AsyncIterator[Posted]:
        """Open a GET stream; after the block, the server has noticed the disconnect."""
        async with self.begun(b"", "GET", **headers) as posted:
            await posted.event()
            assert (posted.reply.status, posted.reply.streamed) == (200, True), posted.reply
            yield posted
        await posted.done()

    async def end(self) -> Reply:
        """Send the session's DELETE."""
        return await self.send(b"", "DELETE")


def answers_of(reply: Reply) -> Sequence[dict[str, Any]]:
    """Return the responses to a batch: on a stream, each is an event of its own."""
    if not reply.streamed:
        return check_batch(reply.raw, reply.revision)
    said = [check_message(one, revision=reply.revision) for one in reply.messages]
    return [one for one in said if "method" not in one]


async def begin(
    tenant: str, token: str | None, revision: str, *, ready: bool = True, **capabilities: Any
) -> Session:
    """Begin a session; with `ready`, also send `notifications/initialized`."""
    session = Session(tenant, token, revision)
    reply = await session.send(initializing(revision, **capabilities), mcp_protocol_version="")
    assert reply.status == 200, reply
    session.id = reply.headers["mcp-session-id"]
    session.server = reply.result
    session.revision = reply.result["protocolVersion"]
    if ready:
        await session.notify("notifications/initialized")
    return session
