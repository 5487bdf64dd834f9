"""Random programs end with the same result as without interruptions, whatever the client does and
whenever a round is cut."""

import asyncio
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.routing import process
from mcphost.serving import shutdown
from tests.cast import Cast
from tests.rounds.client_steps import calling
from tests.rounds.interpreter_calls import Journey
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
def test_every_program_ends_as_if_it_had_run_without_interruption(
    asking: Cast, leaving: Leaving
) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(TOOLS, programs(), clients())
    def ends(tool: str, program: Program, legs: list[Leg]) -> None:
        runner.run(_holds(asking.owner.mcp_token, tool, program, legs, leaving))

    with asyncio.Runner() as runner:
        ends()
        runner.run(process.stop())
