"""Claims in the writer's commits: which one wins, what is committed with it, lost connections."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils import timezone

from mcphost.audit.models import Payload
from mcphost.audit.writer.conditions import BoundCondition
from mcphost.audit.writer.rows import PreparedRow
from mcphost.audit.writer.sinks import PostgresSink, Sink
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError
from mcphost.calls import claims
from mcphost.calls.claims import KEPT_LONGER
from mcphost.calls.models import Claim
from tests.audit.ciphers import GateCipher
from tests.audit.databases import await_a_lock, impatient, locked, record, stored
from tests.audit.submitting import submit_and_wait
from tests.audit.writer.test_writer import block, in_background
from tests.calls.claim_rows import TENANT, claimed, lease, row, submit, wanted, with_payload
from tests.calls.conftest import Start
from tests.calls.lost_connections import after_the_commit, before_the_commit, lose_connections

pytestmark = pytest.mark.django_db(transaction=True)

BAD = {"duration_us": 2**70}


def test_a_claim_is_written_with_its_answers_owner_and_expiry(start: Start) -> None:
    of = wanted()
    mine, before = claimed(start(), of), timezone.now()
    found = row(of)
    assert (found.tenant, found.answers, found.state) == (TENANT, "these", "running")
    assert (found.owner, found.epoch, found.nonce) == (mine.owner, 1, mine.nonce)
    assert abs(found.taken_at - before) < timedelta(minutes=1)
    kept = timedelta(seconds=of.seconds + KEPT_LONGER)
    assert abs(found.expires_at - found.taken_at - kept) < timedelta(seconds=1)


def test_each_claim_of_a_batch_gets_its_own_outcome(start: Start, gate: GateCipher) -> None:
    writer = start()
    held = block(writer, gate)
    rounds = [wanted() for _ in range(60)]
    jobs = [(of, [with_payload(), record()]) for of in rounds * 2]
    free = [record() for _ in range(40)]
    plain = [in_background(lambda r=r: submit_and_wait(writer, [r])) for r in free]
    gate.open_gate()
    results = submit(writer, *((claims.claim(lease(of), of), records) for of, records in jobs))
    assert held() is None
    assert [each() for each in plain] == [None] * 40
    assert sorted(results) == [False] * 60 + [True] * 60
    assert [results[n] + results[n + 60] for n in range(60)] == [1] * 60
    assert Claim.objects.count() == 60
    landed = {
        each.id for (_, records), won in zip(jobs, results, strict=True) if won for each in records
    }
    assert landed | {each.id for each in free} <= stored()
    assert len(stored()) == 1 + 40 + 120, "what came with a lost claim does not land"
    assert Payload.objects.count() == 1 + 60


@pytest.mark.parametrize("place", [0, 29])
def test_a_bad_record_fails_its_own_claim_only(start: Start, place: int) -> None:
    rounds = [wanted() for _ in range(30)]
    jobs = [(claims.claim(lease(of), of), [record()]) for of in rounds]
    jobs[place] = (jobs[place][0], [record(), record(**BAD)])
    results = submit(start(), *jobs)
    assert isinstance(results.pop(place), RecordRefusedError)
    assert results == [True] * 29
    assert not Claim.objects.filter(call=rounds[place].call).exists()
    assert len(stored()) == 29


def test_a_claim_is_concluded_once_and_only_by_its_owner(start: Start) -> None:
    mine, end = claimed(writer := start(), of := wanted()), record()
    assert submit(writer, (claims.conclude(mine, lambda: "sealed"), [end])) == [True]
    assert (row(of).state, row(of).outcome) == ("finished", "sealed")
    later = (claims.conclude(mine, lambda: "other"), [record()])
    stranger = (claims.conclude(lease(of), lambda: "other"), [record()])
    assert submit(writer, later, stranger, (claims.release(mine), [record()])) == [False] * 3
    assert row(of).outcome == "sealed"
    assert stored() == {end.id}


def test_one_of_many_takeovers_of_a_claim_with_matching_answers_and_tenant_wins(
    start: Start,
) -> None:
    lost, mine = claimed(writer := start(), of := wanted()), record()
    other = [wanted("those", call=of.call), wanted(call=of.call, tenant=uuid4())]
    results = submit(writer, *((claims.take_over(lease(each, 2), each), []) for each in other))
    assert results == [False, False]
    assert row(of).epoch == 1
    leases = [lease(of, 2) for _ in range(10)]
    results = submit(writer, *((claims.take_over(each, of), [record()]) for each in leases))
    assert sorted(results) == [False] * 9 + [True]
    found = row(of)
    assert (found.epoch, found.nonce) == (2, leases[results.index(True)].nonce)
    assert len(stored()) == 1
    late = [claims.conclude(lost, lambda: "late"), claims.release(lost)]
    late += [claims.take_over(lease(of, 2), of)]
    assert submit(writer, *((each, [mine]) for each in late)) == [False] * 3
    found.refresh_from_db()
    assert (found.state, found.outcome, found.epoch) == ("running", "", 2)
    assert mine.id not in stored()


LOSSES = [
    (after_the_commit,),
    (before_the_commit,),
    (before_the_commit, after_the_commit, before_the_commit),
    (after_the_commit, after_the_commit),
]


@pytest.mark.parametrize("losses", LOSSES)
def test_the_winner_of_a_claim_is_known_after_a_connection_lost_during_the_commit(
    start, monkeypatch, losses
):
    taken, free, ended, freed, orphan = (wanted() for _ in range(5))
    plain = start()
    _, first, second, _ = [claimed(plain, of) for of in (taken, ended, freed, orphan)]
    lose_connections(monkeypatch, *losses)
    records = [with_payload() for _ in range(6)]
    changes = (
        claims.claim(lease(taken), taken),
        claims.claim(mine := lease(free), free),
        claims.claim(lease(free), free),
        claims.conclude(first, lambda: "sealed"),
        claims.release(second),
        claims.take_over(lease(orphan, 2), orphan),
    )
    results = submit(start(), *((each, [own]) for each, own in zip(changes, records, strict=True)))
    assert results[0] is False
    assert sorted(results[1:3]) == [False, True]
    assert results[3:] == [True] * 3
    assert (row(free).nonce == mine.nonce) is results[1]
    assert [row(of).state for of in (ended, freed, orphan)] == ["finished", "released", "running"]
    assert row(orphan).epoch == 2
    assert stored() == {own.id for own, result in zip(records, results, strict=True) if result}
    assert Payload.objects.count() == 4


@pytest.mark.postgresql
def test_a_commit_that_completes_during_the_next_attempt_is_recognized(start, monkeypatch):
    of, mine = wanted(), record()
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    other.ensure_connection()

    server = other.connection

    def still_at_it(
        sink: Sink, rows: Sequence[PreparedRow], bound: Sequence[BoundCondition]
    ) -> None:
        server.execute("BEGIN")
        PostgresSink(server).write_if(rows, bound)

    lose_connections(monkeypatch, still_at_it)
    result = in_background(lambda: submit(start(), (claims.claim(lease(of), of), [mine])))
    try:
        await_a_lock("WITH claim_new0")
        server.execute("COMMIT")
    finally:
        other.close()
    assert result() == [True]
    assert stored() == {mine.id}


def test_a_claim_that_times_out_on_a_locked_database_writes_nothing(
    start, failures, clock, monkeypatch
):
    impatient(monkeypatch)
    writer, of = start(give_up=10), wanted()
    with locked():
        waiting = in_background(lambda: submit(writer, (claims.claim(lease(of), of), [record()])))
        failures.wait()
        clock.now += 10
        (result,) = waiting()
    assert isinstance(result, RecordLostError)
    assert not Claim.objects.exists()
    assert stored() == set()
