"""Whatever a program asks, whatever its client does and whenever a round is cut short: it ends as if
nothing had happened."""

import asyncio
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.observability import counters
from mcphost.routing import process
from mcphost.serving import shutdown
from tests.cast import Cast
from tests.rounds.journeys import Journey
from tests.rounds.legs import calling
from tests.rounds.programs import Leg, Program, clients, programs

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = int(os.environ.get("EXAMPLES", "40"))
TOOLS = st.sampled_from(["interpret", "interpret_freely"])


class Leaving:
    """Whether the process is about to leave, as far as the next leg is concerned."""

    def __init__(self) -> None:
        self._leaves = False

    def set(self, leaves: bool) -> None:
        self._leaves = leaves

    def __call__(self) -> bool:
        return self._leaves


@pytest.fixture
def leaving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaving]:
    leaves = Leaving()
    monkeypatch.setattr(shutdown, "draining", leaves)
    yield leaves


async def _holds(token: str, tool: str, program: Program, legs: list[Leg], leaves: Leaving) -> None:
    asker = calling(token, tool, program=program)
    straight, winding = Journey(asker, leaves.set), Journey(asker, leaves.set)
    expected = await straight.go([])
    assert await winding.go(legs, rest=Leg(decoys=True)) == expected
    often = straight.effects.counted()
    assert winding.effects.counted().keys() == often.keys()
    for step, keys in winding.effects.key_sets().items():
        assert len(keys) == often[step], f"{step} ran again under another key"
    if not any(leg.kill or leg.again for leg in legs):
        assert winding.effects.counted() == often


@pytest.mark.requirement("mrtr.any-node")
def test_every_program_ends_as_if_nothing_had_happened(asking: Cast, leaving: Leaving) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(TOOLS, programs(), clients())
    def ends(tool: str, program: Program, legs: list[Leg]) -> None:
        runner.run(_holds(asking.owner.mcp_token, tool, program, legs, leaving))

    with asyncio.Runner() as runner:
        ends()
        runner.run(process.stop())


@pytest.mark.parametrize("tool", ["interpret", "interpret_freely"])
async def test_a_step_that_was_cut_short_runs_again_under_the_same_key(
    asking: Cast, leaving: Leaving, tool: str
) -> None:
    program: Program = [["step", "a", 1], ["ask", "q0"], ["step", "a", 1], ["step", "b", 1]]
    journey = Journey(calling(asking.owner.mcp_token, tool, program=program), leaving.set)
    await journey.go([Leg(), Leg(kill=2)])
    assert sorted(journey.effects.counted().values()) == [1, 2, 2]
    assert all(len(keys) == 1 for keys in journey.effects.key_sets().values())


async def test_a_call_that_is_moved_off_a_leaving_process_goes_on_where_it_was(
    asking: Cast, leaving: Leaving
) -> None:
    program: Program = [["step", "a", n] for n in range(4)]
    asker = calling(asking.owner.mcp_token, "interpret", program=program)
    leaving.set(True)
    moved = counters.rounds_shed.series["drain",].value
    first = await asker.leg()
    assert "inputRequests" not in first.result
    assert counters.rounds_shed.series["drain",].value == moved + 1
    second = await asker.leg(first.result["requestState"])
    assert second.result["resultType"] == "complete"
    journey = Journey(asker, leaving.set)
    await journey.go([Leg(shed=True)])
    assert set(journey.effects.counted().values()) == {1}
