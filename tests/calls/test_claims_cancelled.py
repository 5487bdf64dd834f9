"""A cancelled call has all its rounds claimed: no request can claim one after that."""

import threading
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction

from mcphost.calls import cancelled, claims
from mcphost.calls.models import CancelledCall, Claim
from mcphost.calls.states import ClaimState
from tests.calls.claim_rows import claimed, lease, submit, wanted
from tests.calls.conftest import Start

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_round_of_a_cancelled_call_cannot_be_claimed(start: Start) -> None:
    of = wanted()
    assert claims.cancel(of.call, of.tenant, of.round, 600)
    assert submit(start(), (claims.claim(lease(of), of), [])) == [False]
    found = claims.find_claim(of.call, of.round, of.tenant)
    assert (found.state, found.answers) == (ClaimState.FINISHED, claims.CANCELLED)
    assert claims.find_claim(of.call, of.round, uuid4()) is None


def test_a_call_with_a_running_round_is_not_cancelled(start: Start) -> None:
    mine = claimed(writer := start(), of := wanted())
    with transaction.atomic():
        assert not claims.cancel(of.call, of.tenant, 9, 600)
        transaction.set_rollback(True)
    assert Claim.objects.count() == 1
    submit(writer, (claims.conclude(mine, lambda: "sealed"), []))
    assert claims.cancel(of.call, of.tenant, 9, 600)
    found = claims.find_claim(of.call, of.round, of.tenant)
    assert found.outcome == "sealed"  # who repeats the request before gets the reply to it


def test_one_of_a_concurrent_response_and_cancellation_wins(start: Start) -> None:
    """Many times, each in its own order: never both, never none."""
    writer = start()
    for _ in range(25):
        of, cancels = wanted(), []
        barrier = threading.Barrier(2)

        def cancel(of=of, cancels=cancels, barrier=barrier) -> None:  # type: ignore[no-untyped-def]
            try:
                barrier.wait(10)
                with transaction.atomic():
                    done = claims.cancel(of.call, of.tenant, 9, 600)
                    if not done:
                        transaction.set_rollback(True)
                cancels.append(done)
            finally:
                connections.close_all()

        thread = threading.Thread(target=cancel)
        thread.start()
        barrier.wait(10)
        (won,) = submit(writer, (claims.claim(lease(of), of), []))
        thread.join(20)
        assert won is not cancels[0]


def test_a_cancelled_call_is_kept_until_its_request_states_expire() -> None:
    soon, late, tenant = uuid4(), uuid4(), uuid4()
    with transaction.atomic():
        cancelled.cancel(soon, tenant, "gone", -claims.KEPT_LONGER - 1)
        cancelled.cancel(late, tenant, "stuck", 600)
    assert cancelled.unexpired_calls() == {soon, late}
    assert cancelled.prune() == 1
    assert cancelled.reason_of(soon, tenant) is None
    assert cancelled.reason_of(late, tenant) == "stuck"
    assert cancelled.reason_of(late, uuid4()) is None
    assert CancelledCall.objects.count() == 1
    assert connection.in_atomic_block is False
