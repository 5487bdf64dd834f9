"""Limits on requests to Django before authentication, and their refusals: bodies, threads, database connections."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple, ParamSpec, TypeVar

from asgiref.sync import ThreadSensitiveContext
from django.db import connections

from mcphost.identity.attempts import network
from mcphost.protocol.headers import Headers
from mcphost.transport.guard import is_host_allowed
from mcphost.transport.options import options
from mcphost.transport.request import Receive
from mcphost.transport.response import RawHeaders, Send

PER_ADDRESS = 4
WAITING = 1024
WAITING_PER_ADDRESS = 64
UNREAD = 256
UNREAD_PER_ADDRESS = 16


class Shares:
    """A concurrency counter: at most `total` at once, and `per_address` for one client address."""

    def __init__(self, total: int, per_address: int) -> None:
        self._total = total
        self._per_address = per_address
        self._counts: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Take one; False if none is free for this address."""
        if self._counts[address] >= self._per_address or self._counts.total() >= self._total:
            return False
        self._counts[address] += 1
        return True

    def give(self, address: str) -> None:
        """Give one back."""
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]


class _Waiting(NamedTuple):
    """A request that waits for a thread."""

    address: str
    granted: "asyncio.Future[ThreadPoolExecutor]"


class Slots:
    """The threads in which Django's requests run, each a pool of one worker.

    Requests get threads in the order of arrival. Requests of an address that is at its limit are
    skipped, so that they do not delay others. Use only on the event loop.
    """

    def __init__(self, total: int) -> None:
        self._running = Shares(total, PER_ADDRESS)
        self._places = Shares(WAITING, WAITING_PER_ADDRESS)
        self._threads = [
            ThreadPoolExecutor(1, thread_name_prefix=f"mcphost-django-{number}")
            for number in range(total)
        ]
        self._waiting: deque[_Waiting] = deque()
        self.large_bodies = Shares(total, PER_ADDRESS)
        self.unread = Shares(UNREAD, UNREAD_PER_ADDRESS)

    async def take(self, address: str, seconds: float) -> ThreadPoolExecutor | None:
        """Take a thread; None if none becomes free in `seconds`, or if too many requests wait."""
        if self._running.take(address):
            return self._threads.pop()
        if not self._places.take(address):
            return None
        waiting = _Waiting(address, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        granted = waiting.granted
        try:
            await asyncio.wait([granted], timeout=seconds)
        except asyncio.CancelledError:
            if granted.done():
                self.give(address, granted.result())
            raise
        finally:
            self._places.give(address)
            if not granted.done():
                self._waiting.remove(waiting)
        return granted.result() if granted.done() else None

    def give(self, address: str, thread: ThreadPoolExecutor) -> None:
        """Give a thread back, to the first waiting request whose address is below its limit."""
        self._running.give(address)
        self._threads.append(thread)
        for waiting in self._waiting:
            if self._running.take(waiting.address):
                self._waiting.remove(waiting)
                waiting.granted.set_result(self._threads.pop())
                return


@cache
def slots() -> Slots:
    """The slots of this process. `wiring` clears them when a setting changes (only in tests)."""
    return Slots(options().django_requests)


P = ParamSpec("P")
T = TypeVar("T")

DISCONNECT = {"type": "http.disconnect"}
WAIT_SECONDS = 2.0
RETRY_AFTER_SECONDS = 2
SMALL = 64 * 1024
"""Bytes. Bodies and responses up to this size are limited only by the number of requests."""


class Limited:
    """Django's ASGI application with a limit on concurrent requests.

    A request gets a thread once its body has arrived, so that a slow sender occupies none; after
    `WAIT_SECONDS` without a thread the response is 503. When the request has ended, in any way, its
    database connections are closed in that thread; only then does another request get the thread.
    The response is sent after that, so that a slow reader occupies no thread either.

    A body has at most `MCPHOST_FORM_LIMIT` bytes. A larger Content-Length is refused before
    reading, a body that exceeds the limit while it is read is dropped; both get 413. At most as
    many bodies over `SMALL` bytes are received at once as there are threads; further ones get 503.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        limit = options().form_limit
        headers = Headers(scope["headers"])
        if headers.count("host") and not is_host_allowed(headers):
            await _refuse(send, _MISDIRECTED)
            return
        length = headers.get("content-length") or "0"
        if length.isdecimal() and int(length[:20]) > limit:
            await _refuse(send, _too_large(limit))
            return
        client = scope.get("client")
        request = _Request(slots(), network(client[0] if client else ""), receive, limit)
        try:
            try:
                async with ThreadSensitiveContext(executor=request.thread):
                    await self._application(scope, request.receive, request.send)
            finally:
                await request.close()
            await request.answer(send)
        finally:
            request.end()


class _Thread(Executor):
    """The executor of a request's synchronous code; `granted` is set once its body has arrived."""

    granted: ThreadPoolExecutor | None = None

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self.granted is None:
            raise RuntimeError("Django ran code before the request's body had arrived")
        return self.granted.submit(function, *args, **kwargs)


class _Request:
    """One request: the shares that it occupies, and the response that Django made."""

    def __init__(self, shared: Slots, client: str, receive: Receive, limit: int) -> None:
        self._slots = shared
        self._client = client
        self._receive = receive
        self._limit = limit
        self._size = 0
        self._large = False
        self._unread = False
        self._keeps_thread = False
        self._closed = False
        self._refusal: _Refusal | None = None
        self._response: list[dict[str, Any]] = []
        self.thread = _Thread()

    async def receive(self) -> dict[str, Any]:
        """The next event; `http.disconnect` once the request is refused."""
        if self._refusal is not None:
            return DISCONNECT
        event = await self._receive()
        if event["type"] == "http.request":
            self._size += len(event.get("body", b""))
            self._refusal = self._cannot_hold()
            if self._refusal is None and not event.get("more_body", False):
                self._refusal = await self._cannot_run()
        return event if self._refusal is None else DISCONNECT

    async def send(self, event: dict[str, Any]) -> None:
        """Buffer a part of the response: Django has all of it in memory anyway."""
        self._response.append(event)

    async def close(self) -> None:
        """Close the database connections in the thread that used them, then give the thread back.

        The thread may still run code for a client that has disconnected. It closes its connections
        after that, even if this task is cancelled meanwhile.
        """
        if self.thread.granted is None:
            return
        size = sum(len(event.get("body", b"")) for event in self._response)
        if size > SMALL:
            self._unread = self._slots.unread.take(self._client)
            self._keeps_thread = not self._unread
        loop = asyncio.get_running_loop()
        closing = loop.run_in_executor(self.thread.granted, connections.close_all)
        closing.add_done_callback(self._has_closed)
        await asyncio.shield(closing)

    async def answer(self, send: Send) -> None:
        """Send the response, or the refusal."""
        if self._refusal is not None:
            await _refuse(send, self._refusal)
            return
        for event in self._response:
            await send(event)

    def end(self) -> None:
        """Give back the shares that the request still occupies."""
        if self._large:
            self._slots.large_bodies.give(self._client)
        if self._unread:
            self._slots.unread.give(self._client)
        if self._keeps_thread:
            self._keeps_thread = False
            self._let_thread_go()

    def _cannot_hold(self) -> "_Refusal | None":
        """Why the rest of the body is refused; None if it is not."""
        if self._size > self._limit:
            return _too_large(self._limit)
        if self._size > SMALL and not self._large:
            self._large = self._slots.large_bodies.take(self._client)
            return None if self._large else _BUSY
        return None

    async def _cannot_run(self) -> "_Refusal | None":
        """Wait for a thread: why the request is refused; None once it has one."""
        self.thread.granted = await self._slots.take(self._client, WAIT_SECONDS)
        return _BUSY if self.thread.granted is None else None

    def _has_closed(self, closing: "asyncio.Future[None]") -> None:
        self._closed = True
        self._let_thread_go()

    def _let_thread_go(self) -> None:
        """Give the thread back once its connections are closed and it is no longer kept.

        A large response keeps it until it is sent, if too many large responses are unsent.
        """
        if self._closed and not self._keeps_thread and self.thread.granted is not None:
            self._slots.give(self._client, self.thread.granted)


class _Refusal(NamedTuple):
    status: int
    message: str
    headers: RawHeaders = ()


_BUSY = _Refusal(
    503,
    "The server is busy. Try again in a moment.\n",
    ((b"retry-after", b"%d" % RETRY_AFTER_SECONDS), (b"cache-control", b"no-store")),
)

# Django would refuse the Host too, but log a traceback that quotes the header.
_MISDIRECTED = _Refusal(400, "The Host of the request is not allowed.\n")


def _too_large(limit: int) -> _Refusal:
    return _Refusal(413, f"The request is larger than {limit} bytes.\n")


async def _refuse(send: Send, refusal: _Refusal) -> None:
    body = refusal.message.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
