"""Finding a claim, as one tenant."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import F
from django.db.models.functions import Now

from mcphost.calls import claims
from mcphost.calls.claims import ClaimLease
from mcphost.calls.models import Claim
from mcphost.calls.ownership import LEASE
from mcphost.calls.states import ClaimState
from mcphost.feed.models import Node
from mcphost.feed.nodes import ALIVE, Heartbeat
from tests.calls.claim_rows import claimed, submit, wanted
from tests.calls.conftest import Start

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)


def test_a_claim_is_found_by_its_tenant_running_and_finished(start: Start) -> None:
    mine = claimed(writer := start(), of := wanted())
    found = claims.find_claim(of.call, of.round, of.tenant)
    assert (found.answers, found.state, found.outcome) == ("these", ClaimState.RUNNING, "")
    assert (found.owner, found.epoch, found.nonce) == (mine.owner, 1, mine.nonce)
    assert claims.find_claim(of.call, of.round, uuid4()) is None
    assert claims.find_claim(of.call, of.round + 1, of.tenant) is None
    assert claims.find_claim(uuid4(), of.round, of.tenant) is None
    submit(writer, (claims.conclude(mine, lambda: "sealed"), []))
    found = claims.find_claim(of.call, of.round, of.tenant)
    assert (found.state, found.outcome) == (ClaimState.FINISHED, "sealed")


@pytest.mark.parametrize("beat", [None, timedelta(0), ALIVE - SECOND, ALIVE + SECOND])
@pytest.mark.parametrize("age", [timedelta(0), LEASE - 2 * SECOND, LEASE + SECOND])
def test_an_owner_is_silent_when_its_lease_and_its_heartbeat_have_lapsed(start, age, beat):
    of, heartbeat = wanted(), Heartbeat()
    lease = ClaimLease.of(of, heartbeat.id)
    submit(start(), (claims.claim(lease, of), []))
    Claim.objects.update(taken_at=F("taken_at") - age)
    if beat is not None:
        heartbeat.beat()
        Node.objects.update(seen_at=Now() - beat)
    found = claims.find_claim(of.call, of.round, of.tenant)
    assert found.lapsed == (age > LEASE)
    assert found.silent == (age > LEASE and (beat is None or beat > ALIVE))
