"""An overloaded process sheds a call after a recorded step if another process can continue it
(SEP-2322, Load Shedding)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest
from pytest_django import Settings

from mcphost.feed.nodes import Heartbeat, heartbeat
from mcphost.observability import counters
from mcphost.observability.loop_watch import CALM_CHECKS
from mcphost.routing import process
from mcphost.serving import load
from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast
from tests.rounds.client_steps import Asker, calling, done, state_of
from tests.rounds.conftest import module
from tests.rounds.programs import Program
from tests.serving.legacy.processes import beat_at_once

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 60.0
LAG = 0.05
"""The limit in these tests: less than what is left of a block when the watch looks."""
STEPS: Program = [["step", "a", 1], ["step", "b", 2]]


@pytest.fixture(autouse=True)
async def _stopped(asking: Cast) -> AsyncIterator[None]:
    """Stop the threads that wake the event loop before it is closed."""
    yield
    await process.stop()
    load.lag.reset()


@pytest.fixture
def other(asking: Cast) -> Iterator[Heartbeat]:
    """Another process that serves, of which this one knows."""
    other = Heartbeat()
    _beat(other)
    yield other
    other.unregister()
    heartbeat.unregister()


@pytest.fixture
def asker(asking: Cast) -> Asker:
    return calling(asking.owner.mcp_token, "interpret", program=STEPS)


@pytest.fixture
async def late(settings: Settings, asking: Cast) -> None:
    """There is a limit, and how late the event loop is, is what the test says: a busy machine makes
    it late, and a wait lets it recover."""
    settings.MCPHOST_SHED_LAG_SECONDS = LAG
    process.start()
    assert process._threads is not None
    watch = process._threads._watch
    watch.stop()
    assert await asyncio.to_thread(watch.join, PATIENCE), "the watch of the event loop still runs"
    load.lag.reset()


def _beat(other: Heartbeat) -> None:
    other.beat()
    beat_at_once()


def _during_steps(act: Callable[[], Awaitable[None]]) -> None:
    """Do this in each step, just before it is recorded."""
    module("interpreter").after_effect = act


def _ran() -> list[str]:
    return [name for name, *_ in module("interpreter").effects]


def _shed(reason: str) -> float:
    return counters.rounds_shed.series[reason,].value


def _measured(seconds: float) -> None:
    """Let the event loop have been so late for a while."""
    for _ in range(CALM_CHECKS):
        load.lag.observe(seconds)


async def _overload() -> None:
    _measured(2 * LAG)
    assert load.lag.is_over()


async def _limit(cast: Cast, calls: int) -> None:
    fields = TenantFields(title="Acme", concurrent_calls=calls)
    await in_database(update_tenant, cast.acme.id, fields, actor=ACTOR)


async def test_a_late_event_loop_sheds_a_call_once_and_other_processes_learn_of_it(
    asker: Asker, other: Heartbeat, late: None
) -> None:
    async def overloads() -> None:
        await _overload()
        await in_database(beat_at_once)
        await in_database(other.beat)

    before = _shed("lag")
    await in_database(_beat, other)
    assert other.free() == 1
    _during_steps(overloads)
    first = await asker.leg()
    assert other.free() == 0
    assert "inputRequests" not in first.result
    assert _ran() == ["a"]
    assert done(await asker.leg(state_of(first)))  # on this process, which is still overloaded
    assert _ran() == ["a", "b"]
    assert _shed("lag") == before + 1


async def test_no_call_is_shed_without_a_healthy_other_process(asker: Asker, late: None) -> None:
    _during_steps(_overload)
    assert done(await asker.leg()), "there is no other process"
    other = Heartbeat()
    other.overloaded = lambda: True
    await in_database(_beat, other)
    assert done(await asker.leg()), "it is overloaded"
    other.overloaded = lambda: False
    other.drains = lambda: True
    await in_database(_beat, other)
    assert done(await asker.leg()), "it is draining"
    await in_database(other.unregister)
    await in_database(beat_at_once)
    assert done(await asker.leg()), "it has left"
    await in_database(heartbeat.unregister)


async def test_a_full_share_sheds_a_call_when_another_was_refused(
    asking: Cast, asker: Asker, other: Heartbeat, settings: Settings
) -> None:
    async def is_refused() -> None:
        assert (await asker.leg()).status == 429

    await _limit(asking, 2)  # one of them here
    assert done(await asker.leg()), "no other call was refused"
    seconds, settings.MCPHOST_SHED_SHARE_SECONDS = settings.MCPHOST_SHED_SHARE_SECONDS, 0.0
    _during_steps(is_refused)
    assert done(await asker.leg()), "a refusal counts for no time"
    settings.MCPHOST_SHED_SHARE_SECONDS = seconds
    before = _shed("share")
    module("interpreter").effects.clear()
    first = await asker.leg()
    assert "inputRequests" not in first.result
    assert done(await asker.leg(state_of(first)))  # once per call
    assert _ran() == ["a", "b"]
    assert _shed("share") == before + 1
