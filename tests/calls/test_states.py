"""The transitions of a claim: each pair of states is tried on the database."""

import pytest

from mcphost.calls import claims
from mcphost.calls.models import Claim
from mcphost.calls.states import TRANSITIONS, ClaimState, before
from tests.calls.conftest import Start
from tests.calls.made import claimed, row, submit, taking, wanted

pytestmark = pytest.mark.django_db(transaction=True)


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
