"""A state that is sent several times, with and without responses: one set of responses takes
effect."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.audit.models import Entry
from mcphost.audit.records import ANSWER_RECEIVED, ANSWER_REPEATED
from mcphost.routing import process
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.execution import claims
from mcphost.serving.execution.claims import Claiming
from tests.cast import Cast
from tests.mcp import Reply
from tests.rounds.client_steps import (
    BLUE,
    DECLINE,
    RED,
    REFUSED,
    Asker,
    accept,
    asked,
    calling,
    done,
    failed,
    frozen,
    state_of,
)
from tests.rounds.conftest import module
from tests.rounds.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = int(os.environ.get("EXAMPLES", "30"))
NO = {"colour": DECLINE}


@pytest.fixture(params=["named", "anonymous"])
def painting(request: pytest.FixtureRequest, asking: Cast) -> Asker:
    """A call of a tool that acts: by a caller with a token, and by one without, at a public tenant."""
    named = calling(asking.owner.mcp_token, "paint", what="it")
    return named if request.param == "named" else named.but(token=None, tenant="commons")


async def _reasons() -> list[str]:
    rows = Entry.objects.filter(action="state.refused").order_by("id")
    return await in_database(lambda: list(rows.values_list("reason", flat=True)))


async def _again(asker: Asker) -> tuple[str, str]:
    """The state of a new call, and the one that it gives for no answers."""
    first = state_of(await asker.leg())
    return first, state_of(await asker.leg(first))


async def test_the_first_responses_stand_whatever_state_of_the_call_comes_later(
    painting: Asker,
) -> None:
    first, again = await _again(painting)
    assert "declined" in failed(await painting.leg(first, NO))
    for state, answers in ((again, RED), (again, NO), (first, NO), (first, RED)):
        reply = await painting.leg(state, answers)
        assert failed(reply) if answers is NO else frozen(reply)
    assert module("asking").did == []
    assert await _reasons() == ["other-answers"] * 2
    taken = Entry.objects.filter(action=ANSWER_RECEIVED).values_list("outcome", flat=True)
    assert await in_database(lambda: list(taken)) == ["decline"], "recorded once"
    first, again = await _again(painting)
    third = state_of(await painting.leg(again))
    assert done(await painting.leg(third, RED)) == "it is red"
    frozen(await painting.leg(first, NO))
    frozen(await painting.leg(first, BLUE))
    assert module("asking").did == ["it red"]


async def test_one_set_of_concurrent_different_responses_to_a_call_takes_effect(
    painting: Asker,
) -> None:
    first = state_of(await painting.leg())
    states = [first, *[state_of(await painting.leg(first)) for _ in range(3)]]
    answers = [NO, RED, BLUE, RED]
    replies = await asyncio.gather(
        *(painting.leg(state, one) for state, one in zip(states, answers, strict=True))
    )
    ends = {reply.text for reply in replies if "result" in reply.last}
    assert len(ends) == 1
    assert len(module("asking").did) <= 1


async def test_the_same_response_to_a_reissued_state_gets_the_stored_reply(
    painting: Asker,
) -> None:
    first, again = await _again(painting)
    assert done(await painting.leg(first, RED)) == "it is red"
    assert done(await painting.leg(again, RED)) == "it is red"
    assert module("asking").did == ["it red"]
    repeated = Entry.objects.filter(action=ANSWER_REPEATED)
    (entry,) = await in_database(lambda: list(repeated))
    assert (entry.round, entry.facts) == (3, {"keys": ["colour"], "claim": 2})
    frozen(await painting.leg(first))
    frozen(await painting.leg(again, {"other": accept(colour="red")}))
    assert await _reasons() == ["answered", "answered"]


async def test_two_different_halves_of_the_responses_do_not_both_take_effect(asking: Cast) -> None:
    program = [["gather", [[["ask", "q0"]], [["ask", "q1"]]]], ["step", "a", 1]]
    asker = calling(asking.owner.mcp_token, "interpret", program=program)
    first = state_of(await asker.leg())
    again = state_of(await asker.leg(first))
    half = await asker.leg(first, {"q0": accept(number=1)})
    assert list(asked(half)) == ["q1"]
    frozen(await asker.leg(first, {"q1": accept(number=2)}))
    frozen(await asker.leg(again, {"q0": accept(number=3), "q1": accept(number=4)}))
    frozen(await asker.leg(again, {"q0": accept(number=3)}))
    ended = done(await asker.leg(state_of(half), {"q1": accept(number=5)}))
    assert ended.startswith('[[[["accept", 1]], [["accept", 5]]], ["a", 1,')
    assert len(module("interpreter").effects) == 1


class Processes:
    """The claims of two processes, of which the one that is in use serves the next requests; and
    whether it is leaving."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        other = uuid4()
        self._each = (claims._claiming, Claiming(lambda: other))
        self.leaves = False
        monkeypatch.setattr(shutdown, "draining", lambda: self.leaves)

    def use(self, number: int, *, leaves: bool = False) -> None:
        for name in ("claim", "conclude", "is_claimed", "release_without_waiting", "release"):
            self._patch.setattr(claims, name, getattr(self._each[number], name))
        self.leaves = leaves


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    yield Processes(monkeypatch)


class Move(NamedTuple):
    """What a client does next: with which of the states that it has seen, and which answers.

    `given` picks an answer per question (0: none). `process` serves it, `leaves` while it is leaving,
    `times` requests are sent at once.
    """

    state: int
    given: tuple[int, int]
    process: int
    leaves: bool
    times: int


MOVES = st.lists(
    st.builds(
        Move,
        state=st.integers(0, 7),
        given=st.tuples(st.integers(0, 2), st.integers(0, 2)),
        process=st.integers(0, 1),
        leaves=st.booleans(),
        times=st.integers(1, 2),
    ),
    min_size=2,
    max_size=10,
)
PROGRAMS: tuple[Program, ...] = (
    [["ask", "q0"], ["step", "a", 1], ["ask", "q1"], ["step", "b", 2]],
    [["step", "a", 1], ["gather", [[["ask", "q0"]], [["ask", "q1"]]]], ["step", "b", 2]],
    [["gather", [[["ask", "q0"], ["step", "a", 1]], [["ask", "q1"], ["step", "b", 2]]]]],
)


def _answers(given: tuple[int, int]) -> dict[str, Mapping[str, Any]]:
    one, other = given
    some = {"q0": one, "q1": other}
    return {key: accept(number=n) for key, n in some.items() if n} | (
        {"q1": DECLINE} if other == 2 else {}
    )


async def _takes_one_set(asker: Asker, moves: list[Move], processes: Processes) -> None:
    module("interpreter").reset()
    processes.use(0)
    states, ends = [state_of(await asker.leg())], set()
    for move in moves:
        processes.use(move.process, leaves=move.leaves)
        state = states[move.state % len(states)]
        legs = (asker.leg(state, _answers(move.given)) for _ in range(move.times))
        for reply in await asyncio.gather(*legs):
            ends |= _ended(reply, states)
    assert len(ends) <= 1, "the call ended in two ways"
    ran = Counter(line[0] for line in module("interpreter").effects)
    assert set(ran.values()) <= {1}, "a step took effect more than once"


def _ended(reply: Reply, states: list[str]) -> set[str]:
    """What the reply ends the call with, if it does; a state that it brings is added to the others."""
    if "error" in reply.last:
        assert reply.error["data"] == {"reason": REFUSED}, reply.raw
        return set()
    if reply.result["resultType"] == "input_required":
        if reply.result["requestState"] not in states:
            states.append(reply.result["requestState"])
        return set()
    out_of_legs = reply.result.get("isError")
    return set() if out_of_legs else {reply.text}


@pytest.mark.requirement("mrtr.one-set")
def test_at_most_one_set_of_responses_takes_effect_in_any_order(
    asking: Cast, processes: Processes
) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(PROGRAMS), MOVES)
    def takes_one(program: Program, moves: list[Move]) -> None:
        asker = calling(asking.owner.mcp_token, "interpret", program=program)
        runner.run(_takes_one_set(asker, moves, processes))

    with asyncio.Runner() as runner:
        takes_one()
        runner.run(process.stop())
