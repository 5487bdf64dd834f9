"""A client that calls this process's application through ASGI, and validates every message."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from mcphost.routing import application
from tests.wire import MODERN, NAME_PARAMS, check_message, check_response

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
PATIENCE = 30.0


def meta(**extra: Any) -> dict[str, Any]:
    """Return the `_meta` of a conforming client; `logLevel` gets the protocol's prefix."""
    fields = {
        f"{PREFIX}protocolVersion": REVISION,
        f"{PREFIX}clientInfo": {"name": "tests", "version": "1"},
        f"{PREFIX}clientCapabilities": extra.pop("capabilities", {}),
    }
    if "logLevel" in extra:
        fields[f"{PREFIX}logLevel"] = extra.pop("logLevel")
    return {**fields, **extra}


def request(method: str, params: Mapping[str, Any] | None = None, **extra: Any) -> dict[str, Any]:
    """Return a JSON-RPC request of this revision."""
    body = {"_meta": meta(**extra), **(params or {})}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": body}


def header_value(text: str) -> str:
    """Encode a text for a header (spec: streamable-http, "Value Encoding")."""
    if re.fullmatch(r"(?!=\?)[!-~]+", text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def headers_for(body: Any, token: str | None = None) -> dict[str, str]:
    """Return the headers that the revision requires for a body."""
    headers = {
        "host": "localhost",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": REVISION,
    }
    if isinstance(body, dict) and isinstance(body.get("method"), str):
        headers["mcp-method"] = body["method"]
        params = body.get("params")
        field = NAME_PARAMS.get(body["method"], "name")
        name = params.get(field) if isinstance(params, dict) else None
        if isinstance(name, str):
            headers["mcp-name"] = header_value(name)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return headers


@dataclass
class Reply:
    """A response: the status, the headers, and the JSON-RPC messages in order."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""
    method: str = ""
    revision: str = MODERN

    @property
    def streamed(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def messages(self) -> list[dict[str, Any]]:
        if not self.streamed:
            return [orjson.loads(self.raw)]
        lines = self.raw.decode().splitlines()
        said = [line[6:] for line in lines if line.startswith("data: ")]
        return [orjson.loads(one) for one in said if one]

    @property
    def last(self) -> dict[str, Any]:
        return self.messages[-1]

    @property
    def result(self) -> dict[str, Any]:
        assert "result" in self.last, self.last
        result: dict[str, Any] = self.last["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        assert "error" in self.last, self.last
        error: dict[str, Any] = self.last["error"]
        return error

    @property
    def text(self) -> str:
        text: str = self.result["content"][0]["text"]
        return text

    def check(self) -> "Reply":
        """Validate every message against the schema of the revision."""
        for message in self.messages[:-1]:
            check_message(message, revision=self.revision)
        if "result" in self.last and self.method:
            check_response(self.method, self.last, self.revision)
        else:
            check_message(self.last, revision=self.revision)
        return self


class Exchange:
    """One HTTP request in progress: its body can be sent late, its response read as it arrives."""

    def __init__(
        self, path: str, headers: Mapping[str, str], http_method: str = "POST", query: str = ""
    ) -> None:
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.reply = Reply()
        self._read = 0
        self.reading = asyncio.Event()
        self.reading.set()
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": http_method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": raw,
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
        }
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        await application(self._scope, self._take, self._collect)  # type: ignore[arg-type]

    async def _take(self) -> dict[str, Any]:
        event = await self._incoming.get()
        self._incoming.task_done()
        return event

    async def _collect(self, event: Any) -> None:
        await self.reading.wait()
        if event["type"] == "http.response.start":
            self.reply.status = event["status"]
            self.reply.headers = {k.decode(): v.decode() for k, v in event["headers"]}
        else:
            self.reply.raw += event.get("body", b"")
            if not event.get("more_body", False):
                self.hang_up()  # as servers do: there is no more to read
        await self._outgoing.put(event)

    def write(self, body: bytes, *, more: bool = False) -> None:
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": more})

    async def taken(self) -> None:
        """Wait until the server has read what was written."""
        async with asyncio.timeout(PATIENCE):
            await self._incoming.join()

    def hang_up(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def event(self) -> dict[str, Any]:
        """Return the next ASGI event of the response."""
        async with asyncio.timeout(PATIENCE):
            return await self._outgoing.get()

    async def until(self, text: bytes) -> None:
        """Wait until `text` has been received."""
        while text not in self.reply.raw:
            await self.event()

    async def message(self) -> dict[str, Any]:
        """Return the next message of the stream, validated against the schema."""
        while (end := self.reply.raw.find(b"\n\n", self._read)) < 0:
            await self.event()
        frame, self._read = self.reply.raw[self._read : end], end + 2
        if not frame.startswith(b"data: "):
            return await self.message()
        message: dict[str, Any] = orjson.loads(frame[6:])
        if "method" in message:
            return check_message(message)
        return check_response(self.reply.method, message)

    async def done(self) -> Reply:
        async with asyncio.timeout(PATIENCE):
            await self.task
        return self.reply


@asynccontextmanager
async def begun(
    tenant: str, body: Any, token: str | None = None, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Exchange]:
    """Begin a POST to a tenant's URL; its response is read inside the block."""
    wanted = {**headers_for(body, token), **(headers or {})}
    exchange = Exchange(f"/t/{tenant}/mcp", {k: v for k, v in wanted.items() if v})
    exchange.reply.method = body.get("method", "") if isinstance(body, dict) else ""
    exchange.write(body if isinstance(body, bytes) else orjson.dumps(body))
    try:
        yield exchange
    finally:
        exchange.hang_up()
        await exchange.done()


@dataclass
class Listening:
    """A subscription: what the server acknowledged, and its notifications."""

    exchange: Exchange
    honoured: dict[str, Any]

    async def told(self) -> str:
        """Return the next notification: its method without the prefix, or its URI."""
        message = await self.exchange.message()
        assert "method" in message, message
        assert message["params"]["_meta"] == self.meta
        params = message["params"]
        uri: str | None = params.get("uri")
        return uri or str(message["method"]).removeprefix("notifications/")

    async def ended(self) -> None:
        """Check that the server ends it, with the result and nothing else."""
        message = await self.exchange.message()
        result = message["result"]
        assert result["resultType"] == "complete"
        assert result["_meta"][f"{PREFIX}subscriptionId"] == message["id"] == self.id
        assert type(message["id"]) is type(self.id)
        await self.exchange.done()

    id: str | int = 1

    @property
    def meta(self) -> dict[str, Any]:
        return {f"{PREFIX}subscriptionId": self.id}


@asynccontextmanager
async def listening(
    tenant: str,
    token: str | None,
    id: str | int = 1,
    capabilities: Mapping[str, Any] | None = None,
    **fields: Any,
) -> AsyncIterator[Listening]:
    """Open a subscription to `fields` (toolsListChanged=True, …) and await its acknowledgement."""
    params = {"notifications": fields}
    body = {**request("subscriptions/listen", params, capabilities=capabilities or {}), "id": id}
    async with begun(tenant, body, token) as exchange:
        acknowledged = await exchange.message()
        assert exchange.reply.streamed
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        params = acknowledged["params"]
        found = Listening(exchange, params["notifications"], id)
        assert params["_meta"] == found.meta
        assert type(params["_meta"][f"{PREFIX}subscriptionId"]) is type(id)
        yield found


async def send(
    tenant: str, body: Any, token: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """POST a body (bytes as they are) and wait for the whole reply; validate each message.

    Empty headers are left out.
    """
    wanted = {**headers_for(body, token), **(headers or {})}
    exchange = Exchange(f"/t/{tenant}/mcp", {k: v for k, v in wanted.items() if v})
    exchange.reply.method = body.get("method", "") if isinstance(body, dict) else ""
    exchange.write(body if isinstance(body, bytes) else orjson.dumps(body))
    reply = await exchange.done()
    return reply.check() if reply.raw else reply


async def ask(
    tenant: str, method: str, params: Any = None, token: str | None = None, **extra: Any
) -> Reply:
    """Send a request and wait for the whole reply."""
    return await send(tenant, request(method, params, **extra), token)


async def call(
    tenant: str, tool: str, arguments: Any = None, token: str | None = None, **extra: Any
) -> Reply:
    """Call a tool."""
    params = {"name": tool, **({} if arguments is None else {"arguments": arguments})}
    return await ask(tenant, "tools/call", params, token, **extra)
