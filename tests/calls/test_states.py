"""The transitions of a claim, each pair of states tried on the database; those of a session's call and of its
stream, as the documentation shows them."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from mcphost.calls import claims
from mcphost.calls.models import Claim
from mcphost.calls.states import (
    OWNED_CALL,
    STREAM,
    TRANSITIONS,
    ClaimState,
    OwnedCallState,
    StreamState,
    before,
    diagram,
)
from tests.calls.conftest import Start
from tests.calls.made import claimed, row, submit, taking, wanted

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parent.parent.parent
Table = Mapping[tuple[StrEnum, StrEnum], StrEnum]


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(ClaimState)
    assert before(ClaimState.FINISHED) == {ClaimState.RUNNING, ClaimState.RELEASED}


@pytest.mark.parametrize("now", ClaimState)
@pytest.mark.parametrize("then", ClaimState)
def test_a_claim_goes_only_where_the_table_lets_it(start: Start, now: ClaimState, then: ClaimState):
    writer, of = start(), wanted()
    mine = claimed(writer, of)
    Claim.objects.update(state=now)
    change = {
        ClaimState.RUNNING: claims.take_over(taking(of, 2), of),
        ClaimState.RELEASED: claims.release(mine),
        ClaimState.FINISHED: claims.conclude(mine, lambda: "sealed"),
    }[then]
    allowed = then in TRANSITIONS[now]
    assert submit(writer, (change, [])) == [allowed]
    assert row(of).state == (then if allowed else now)


@pytest.mark.parametrize(
    ("table", "ends"),
    [
        (OWNED_CALL, {OwnedCallState.RELEASED, OwnedCallState.ENDING}),
        (STREAM, {StreamState.ENDED, StreamState.MOVED, StreamState.DROPPED}),
    ],
)
def test_every_state_can_be_reached_and_only_the_ends_lead_nowhere(
    table: Table, ends: set[StrEnum]
) -> None:
    (first, *_), _ = zip(*table, strict=True)
    states = set(type(first))
    reached = {first}
    while new := {then for (state, _), then in table.items() if state in reached} - reached:
        reached |= new
    assert reached == states
    assert states - {state for state, _ in table} == ends


@pytest.mark.parametrize("table", [OWNED_CALL, STREAM])
def test_the_diagram_is_in_the_documentation(table: Table) -> None:
    lines = "\n".join(diagram(table))
    assert f"```\n{lines}\n```" in (ROOT / "docs" / "design" / "sessions.md").read_text()
