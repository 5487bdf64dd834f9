"""What a whole session, and a stateless client that does the same, cost the server.

The limits are what it costs now: a change that makes a step cheaper lowers its row.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from mcphost.serving.legacy import stream as outgoing
from mcphost.serving.legacy.get_stream import get_streams
from tests.cast import Cast
from tests.legacy import Session, calling, initializing
from tests.mcp import PATIENCE, ask
from tests.rounds.legs import Asker, done, state_of
from tests.rounds.legs import calling as stateless_call
from tests.serving.legacy.callers import true
from tests.transport.costs import Cost, Costs, counting
from tests.transport.legacy.test_session_questions import accepted, text
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)

LAST = SESSION_BASED[-1]
FORMS: Mapping[str, Any] = {"elicitation": {"form": {}}}
RED = {"action": "accept", "content": {"colour": "red"}}
NINE = {"action": "accept", "content": {"size": 9}}
TOOL, ARGUMENTS = "paint_sized", {"what": "a wall"}
END = "a wall is red, size 9"

# Commits, hops, SELECTs, writes. On PostgreSQL there are fewer writes: one does what several do.
SESSION: Mapping[str, Cost] = {
    "initialize": Cost(1, 0, 0, 1),
    "notifications/initialized": Cost(0, 0, 1, 0),
    "GET": Cost(1, 0, 0, 3),
    "tools/list": Cost(0, 0, 1, 0),
    "tools/call": Cost(2, 0, 1, 7),
    "the first answer": Cost(2, 0, 0, 10),
    "the second answer": Cost(2, 0, 0, 10),
    "DELETE": Cost(1, 0, 0, 3),
}
STATELESS: Mapping[str, Cost] = {
    "server/discover": Cost(0, 0, 0, 0),
    "tools/list": Cost(0, 0, 0, 0),
    "tools/call": Cost(2, 0, 0, 3),
    "the first retry": Cost(2, 0, 0, 6),
    "the second retry": Cost(2, 0, 0, 6),
}

# A tool that only reads may start without a record.
READING: Mapping[str, Cost] = {
    **STATELESS,
    "tools/call": Cost(1, 0, 0, 2),
    "the first retry": Cost(2, 0, 0, 4),
    "the second retry": Cost(2, 0, 0, 4),
}


@pytest.fixture
def costs(asking: Cast, monkeypatch: pytest.MonkeyPatch) -> Iterator[Costs]:
    with counting(monkeypatch) as costs:
        yield costs


@pytest.fixture(autouse=True)
async def _nothing_is_left(asking: Cast) -> AsyncIterator[None]:
    yield
    await true(lambda: not outgoing.live)


def within(costs: Costs, limits: Mapping[str, Cost]) -> None:
    """Assert that no step costs more than its limit."""
    assert set(costs.steps) == set(limits), costs.table()
    assert all(cost.within(limits[step]) for step, cost in costs.steps.items()), costs.table()


async def _serve_session(cast: Cast, costs: Costs) -> None:
    """One session from `initialize` to DELETE, with a GET stream and a tool that asks twice."""
    session = Session("acme", cast.owner.mcp_token, LAST)
    async with costs.step("initialize"):
        reply = await session.send(initializing(LAST, **FORMS), mcp_protocol_version="")
    session.id = reply.headers["mcp-session-id"]
    async with costs.step("notifications/initialized"):
        await session.notify("notifications/initialized")
    async with costs.step("GET"):
        listening = session.exchange(b"", "GET")
        await listening.event()
        await _receives()
    async with costs.step("tools/list"):
        assert (await session.ask("tools/list")).result["tools"]
    await _serve_call(session, costs)
    async with costs.step("DELETE"):
        assert (await session.end()).status == 204
        await listening.done()


async def _serve_call(session: Session, costs: Costs) -> None:
    async with costs.step("tools/call"):
        stream = session.exchange(calling(TOOL, ARGUMENTS))
        first = await stream.message()
    async with costs.step("the first answer"):
        await accepted(session, first, RED)
        second = await stream.message()
    async with costs.step("the second answer"):
        await accepted(session, second, NINE)
        assert await text(stream) == END
        await stream.done()


async def _receives() -> None:
    """Wait until the only GET stream of this process is its session's newest."""
    async with asyncio.timeout(PATIENCE):
        here = get_streams._here
        while not all(one.newest for of in here.values() for one in of.values()):  # noqa: ASYNC110
            await asyncio.sleep(0)


async def _serve_stateless(cast: Cast, costs: Costs) -> None:
    """The same by a stateless client, whose answers come with retries of its call."""
    await _look_around(cast, costs)
    asker = stateless_call(cast.owner.mcp_token, TOOL, **ARGUMENTS)
    assert await _retry(asker, costs, {"colour": RED}, {"size": NINE}) == END


async def _serve_reading(cast: Cast, costs: Costs) -> None:
    """The same with a tool that only reads."""
    await _look_around(cast, costs)
    asker = stateless_call(cast.owner.mcp_token, "in_turn", count=2)
    assert await _retry(asker, costs, {"size0": NINE}, {"size1": NINE}) == "9 9"


async def _look_around(cast: Cast, costs: Costs) -> None:
    token = cast.owner.mcp_token
    async with costs.step("server/discover"):
        (await ask("acme", "server/discover", token=token)).check()
    async with costs.step("tools/list"):
        assert (await ask("acme", "tools/list", token=token)).result["tools"]


async def _retry(
    asker: Asker, costs: Costs, first: Mapping[str, Any], second: Mapping[str, Any]
) -> str:
    async with costs.step("tools/call"):
        asked = await asker.leg()
    async with costs.step("the first retry"):
        again = await asker.leg(state_of(asked), first)
    async with costs.step("the second retry"):
        return done(await asker.leg(state_of(again), second))


async def test_a_session_costs_no_more_than_its_limits(asking: Cast, costs: Costs) -> None:
    await _serve_session(asking, Costs())
    await _serve_session(asking, costs)
    within(costs, SESSION)
    assert costs.total.within(Cost(10, 3, 5, costs.total.writes))


async def test_a_stateless_client_costs_no_more_than_its_limits(asking: Cast, costs: Costs) -> None:
    await _serve_stateless(asking, Costs())
    await _serve_stateless(asking, costs)
    within(costs, STATELESS)


async def test_a_tool_that_only_reads_costs_one_commit_less(asking: Cast, costs: Costs) -> None:
    await _serve_reading(asking, Costs())
    await _serve_reading(asking, costs)
    within(costs, READING)
    assert (costs.total.commits, costs.total.hops) == (5, 0)
