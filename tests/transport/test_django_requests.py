"""Limits on Django's requests of unauthenticated clients: bodies, threads, connections."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings
from pytest_django import Settings

from mcphost.transport import django_requests
from mcphost.transport.django_requests import PER_ADDRESS, SMALL, UNREAD_PER_ADDRESS, Limited, slots
from tests.mcp import Exchange, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("stopped")]

PATIENCE = 20.0
SIGN_IN = "/admin/login/"
FORM = "application/x-www-form-urlencoded"
SMALL_FORMS = override_settings(MCPHOST_FORM_LIMIT=1000)


async def posted(*pieces: bytes, length: str = "") -> Reply:
    headers = {"host": "localhost", "content-type": FORM, "content-length": length}
    exchange = Exchange(SIGN_IN, {k: v for k, v in headers.items() if v})
    for piece in pieces:
        exchange.write(piece, more=True)
    exchange.write(b"")
    return await exchange.done()


@SMALL_FORMS
async def test_a_form_with_a_too_large_content_length_is_refused_unread() -> None:
    assert (await posted(length="1001")).status == 413
    assert (await posted(length="9" * 5000)).status == 413


@SMALL_FORMS
async def test_a_form_without_content_length_is_read_up_to_the_limit() -> None:
    reply = await posted(b"a=" + b"x" * 998, b"x", b"x" * 1000)
    assert (reply.status, reply.raw) == (413, b"The request is larger than 1000 bytes.\n")


@SMALL_FORMS
async def test_a_form_of_exactly_the_maximum_size_reaches_the_page() -> None:
    # Not refused by the limit: the page itself refuses it.
    assert (await posted(b"a=" + b"x" * 998, length="1000")).status == 403
    assert (await posted(b"a=" + b"x" * 499, b"x" * 499)).status == 403


class Blocking:
    """An ASGI application like Django: reads the body, then runs a view in its thread.

    The view uses the database, and ends when the test lets it.
    """

    def __init__(self) -> None:
        self.began = asyncio.Semaphore(0)
        self.release = threading.Event()
        self.used: list[BaseDatabaseWrapper] = []
        self.size = 5
        self.fails = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        event = await receive()
        while event.get("more_body"):
            event = await receive()
        if event["type"] == "http.disconnect":
            return
        loop = asyncio.get_running_loop()
        view = asyncio.ensure_future(sync_to_async(self._view)(loop))
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait([view, gone], return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if not view.done():
            view.cancel()
            return
        view.result()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * self.size})

    def _view(self, loop: asyncio.AbstractEventLoop) -> None:
        connection = connections[DEFAULT_DB_ALIAS]
        connection.ensure_connection()
        self.used.append(connection)
        loop.call_soon_threadsafe(self.began.release)
        assert self.release.wait(PATIENCE)
        if self.fails:
            raise RuntimeError("a view raised")


class Asking:
    """One request to an application; `read` is cleared while the client reads nothing."""

    def __init__(self, application: Any, address: str = "192.0.2.1") -> None:
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.read = asyncio.Event()
        self.read.set()
        scope = {"type": "http", "headers": [], "client": (address, 50000)}
        self.task = asyncio.create_task(application(scope, self.events.get, self._send))

    def write(self, body: bytes = b"", *, more: bool = False) -> "Asking":
        self.events.put_nowait({"type": "http.request", "body": body, "more_body": more})
        return self

    def hang_up(self) -> None:
        self.events.put_nowait({"type": "http.disconnect"})

    async def _send(self, event: dict[str, Any]) -> None:
        await self.read.wait()
        self.sent.append(event)

    async def status(self) -> int:
        async with asyncio.timeout(PATIENCE):
            await self.task
        return self.sent[0]["status"] if self.sent else 0


@pytest.fixture
async def view() -> AsyncIterator[Blocking]:
    slots.cache_clear()
    blocking = Blocking()
    yield blocking
    blocking.release.set()
    slots.cache_clear()


async def _began(view: Blocking, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        for _ in range(count):
            await view.began.acquire()


async def test_four_requests_of_an_address_run_concurrently_and_further_ones_wait(
    view: Blocking,
) -> None:
    application = Limited(view)
    asked = [Asking(application).write() for _ in range(PER_ADDRESS + 2)]
    elsewhere = Asking(application, "192.0.2.2").write()
    await _began(view, PER_ADDRESS + 1)
    assert view.began.locked()
    view.release.set()
    assert [await one.status() for one in [*asked, elsewhere]] == [200] * (PER_ADDRESS + 3)


async def test_a_request_that_gets_no_thread_in_time_gets_retry_after(
    view: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(django_requests, "WAIT_SECONDS", 0.01)
    application = Limited(view)
    asked = [Asking(application).write() for _ in range(PER_ADDRESS)]
    await _began(view, PER_ADDRESS)
    late = Asking(application).write()
    assert await late.status() == 503
    assert (b"retry-after", b"2") in late.sent[0]["headers"]
    view.release.set()
    assert [await one.status() for one in asked] == [200] * PER_ADDRESS


async def test_a_slow_sender_occupies_no_thread(view: Blocking) -> None:
    application = Limited(view)
    slow = [Asking(application).write(b"a", more=True) for _ in range(20)]
    view.release.set()
    assert await Asking(application).write().status() == 200
    for one in slow:
        one.hang_up()
    assert [await one.status() for one in slow] == [0] * 20


async def test_an_aborted_request_keeps_its_thread_until_its_view_ends(
    view: Blocking, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MCPHOST_DJANGO_REQUESTS = 1
    monkeypatch.setattr(django_requests, "WAIT_SECONDS", 0.01)
    application = Limited(view)
    aborted = Asking(application).write()
    await _began(view, 1)
    aborted.hang_up()
    assert await Asking(application, "192.0.2.2").write().status() == 503
    assert view.used[0].connection is not None
    view.release.set()
    assert await aborted.status() == 0
    assert view.used[0].connection is None
    assert await Asking(application).write().status() == 200


async def test_the_number_of_large_unread_responses_is_limited(
    view: Blocking, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MCPHOST_DJANGO_REQUESTS = 1
    application = Limited(view)
    view.size = 10 * SMALL
    view.release.set()
    slow = []
    for _ in range(UNREAD_PER_ADDRESS + 1):
        one = Asking(application)
        one.read.clear()
        slow.append(one.write())
        await _began(view, 1)
    monkeypatch.setattr(django_requests, "WAIT_SECONDS", 0.01)
    assert await Asking(application).write().status() == 503, "the last one keeps its thread"
    for one in slow:
        one.read.set()
        assert await one.status() == 200
    assert await Asking(application).write().status() == 200


async def test_the_number_of_large_bodies_received_concurrently_is_limited(view: Blocking) -> None:
    application = Limited(view)
    large = b"x" * (SMALL + 1)
    arriving = [Asking(application).write(large, more=True) for _ in range(PER_ADDRESS)]
    assert await Asking(application).write(large, more=True).status() == 503
    view.release.set()
    assert await Asking(application, "192.0.2.2").write(large).status() == 200
    assert [await one.write().status() for one in arriving] == [200] * PER_ADDRESS
    assert await Asking(application).write(large).status() == 200
