"""Deleting expired claims, and releasing claims."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.calls import claims
from mcphost.calls.claims import ClaimLease
from mcphost.calls.models import Claim
from mcphost.calls.states import ClaimState
from tests.calls.claim_rows import TENANT, claimed, lease, row, submit, wanted

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def put(count: int, state: ClaimState, over: timedelta) -> None:
    """Write `count` claims that expired `over` ago."""
    now = timezone.now()
    Claim.objects.bulk_create(
        Claim(
            call=uuid4(), round=1, tenant=TENANT, answers="", nonce=uuid4().hex, owner=uuid4(),
            epoch=1, state=state, taken_at=now, expires_at=now,
        )
        for _ in range(count)
    )  # fmt: skip
    Claim.objects.filter(state=state).update(expires_at=Now() - over)


def test_expired_claims_are_pruned_in_portions() -> None:
    put(1001, ClaimState.FINISHED, HOUR)
    put(7, ClaimState.RELEASED, HOUR)
    put(3, ClaimState.RUNNING, 23 * HOUR)
    assert [claims.prune() for _ in range(4)] == [500, 500, 8, 0]
    assert Claim.objects.count() == 3, "a round may last longer than somebody waits for it"
    Claim.objects.update(expires_at=Now() - 25 * HOUR)
    put(2, ClaimState.FINISHED, -HOUR)
    assert claims.prune() == 3
    assert Claim.objects.count() == 2


def test_only_claims_unchanged_since_their_lease_are_settled_in_portions(start, monkeypatch):
    monkeypatch.setattr(claims, "PRUNED_AT_ONCE", 2)
    writer = start()
    rounds = [wanted() for _ in range(8)]
    mine = [claimed(writer, of) for of in rounds]
    submit(writer, (claims.conclude(mine[0], lambda: "sealed"), []))
    submit(writer, (claims.take_over(lease(rounds[1], 2), rounds[1]), []))
    never: ClaimLease = lease(wanted())
    assert claims.settle([*mine[:6], never], ClaimState.RELEASED) == 4
    assert claims.settle([mine[0], *mine[5:7]], ClaimState.FINISHED) == 1
    states = ["finished", "running", *["released"] * 4, "finished", "running"]
    assert [row(of).state for of in rounds] == states
    assert claims.settle([], ClaimState.RELEASED) == 0
