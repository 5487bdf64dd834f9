"""Requests while the database is unreachable: they wait, are limited, and get `Retry-After`."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from django.db import OperationalError
from pytest_django import Settings

from mcphost.observability.availability import Source, availability
from mcphost.serving import database
from mcphost.serving.legacy import stream as outgoing
from tests import mcp
from tests.cast import Cast
from tests.legacy import begin
from tests.mcp import Reply
from tests.served import entries, probes
from tests.serving.legacy.callers import true

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 20
LAST = "2025-11-25"


class Door:
    """The database as probes see it. Another thread may report it unreachable at any time, too."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()

    def probe(self) -> None:
        if not self._open.is_set():
            raise OperationalError("shut")

    def shut(self) -> None:
        self._open.clear()
        availability.lost(Source.CONNECTION, "a test")

    async def open(self) -> None:
        self._open.set()
        assert await availability.wait(PATIENCE)


@pytest.fixture(autouse=True)
async def door(
    served: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Door]:
    settings.MCPHOST_DATABASE_WAIT_SECONDS = PATIENCE
    made = Door()
    monkeypatch.setattr(availability, "probe", made.probe)
    yield made
    settings.MCPHOST_DATABASE_WAIT_SECONDS = PATIENCE
    await made.open()
    probes().release.set()
    await true(lambda: not outgoing.live)


async def _all_wait(count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while database.waiting() != count:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)


def _is_told_to_come_back(reply: Reply, status: int) -> None:
    error = reply.error
    assert reply.status == status
    assert error["data"]["retryAfter"] == int(reply.headers["retry-after"])


async def test_calls_start_when_the_database_is_back(served: Cast, door: Door) -> None:
    token = served.owner.mcp_token
    session = await begin("acme", token, LAST)
    assert (await mcp.call("acme", "echo", {"text": "warm"}, token)).status == 200
    door.shut()
    calls = [
        asyncio.ensure_future(mcp.call("acme", "echo", {"text": "a"}, token)),
        asyncio.ensure_future(session.call("echo", {"text": "a"})),
        asyncio.ensure_future(begin("acme", token, LAST)),
    ]
    await _all_wait(3)
    await door.open()
    plain, of_session, begun = await asyncio.gather(*calls)
    assert (plain.status, of_session.status) == (200, 200)
    assert plain.result["content"] == of_session.result["content"]
    assert begun.id
    assert len(await entries("echo")) == 3


@pytest.mark.parametrize("waiters", [0, 10])
async def test_calls_that_wait_too_long_or_are_too_many_get_retry_after(
    served: Cast, settings: Settings, door: Door, waiters: int
) -> None:
    settings.MCPHOST_STREAM_AFTER_SECONDS = 0.01
    token = served.owner.mcp_token
    session = await begin("acme", token, LAST)
    assert (await mcp.call("acme", "echo", {"text": "warm"}, token)).status == 200
    settings.MCPHOST_DATABASE_WAITERS = waiters
    settings.MCPHOST_DATABASE_WAIT_SECONDS = 0.2 if waiters else PATIENCE
    door.shut()
    _is_told_to_come_back(await mcp.call("acme", "echo", {"text": "a"}, token), 503)
    _is_told_to_come_back(await session.call("echo", {"text": "a"}), 200)
    stranger = await mcp.call("acme", "echo", {"text": "a"}, served.stranger.mcp_token)
    _is_told_to_come_back(stranger, 503)
    assert database.waiting() == 0
    settings.MCPHOST_DATABASE_WAITERS = 10
    settings.MCPHOST_DATABASE_WAIT_SECONDS = PATIENCE
    await door.open()
    assert (await mcp.call("acme", "echo", {"text": "a"}, token)).status == 200
    assert (await session.call("echo", {"text": "a"})).result
