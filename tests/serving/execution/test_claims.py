"""Claimed rounds: run by one process at a time, and never again once they have ended."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.audit.records import Record
from mcphost.audit.writer.writer import RecordLostError
from mcphost.calls import claims as stored
from mcphost.calls.models import Claim
from mcphost.calls.ownership import SupersededError
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution import claims
from mcphost.serving.execution.claims import (
    Claiming,
    ClaimLimits,
    ClaimRefused,
    Finished,
    WantedClaim,
    Won,
)
from mcphost.serving.process.housekeeping import Housekeeping
from mcphost.vault import selectors as vault
from mcphost.vault.models import TenantSecret
from tests.audit.ciphers import GateCipher
from tests.audit.conftest import HandClock
from tests.audit.databases import record
from tests.calls.lost_connections import after_the_commit, lose_connections
from tests.cast import Cast
from tests.serving.execution.claimers import (
    QUICK,
    UNHURRIED,
    Process,
    age_claims,
    age_processes,
    expire_claims,
    gathered,
    processes,
    recorded,
    wanted,
)

pytestmark = pytest.mark.django_db(transaction=True)

PATIENT = ClaimLimits(wait=60, first_look=60, longest_pause=60)
"""Waiting requests look a second time only when they are notified."""


@pytest.fixture
def two(cast: Cast) -> Iterator[list[Process]]:
    with processes(2) as made:
        yield made


@pytest.fixture
def one(cast: Cast) -> Iterator[Process]:
    with processes(1) as made:
        yield made[0]


@pytest.fixture
def gate() -> Iterator[GateCipher]:
    """A cipher that blocks the writer at the first payload until the gate is opened."""
    cipher, before = GateCipher(), payload_cipher()
    set_payload_cipher(cipher)
    yield cipher
    cipher.open_gate()
    set_payload_cipher(before)


def held(cast: Cast) -> Record:
    """A record at which the gate blocks the writer."""
    return record(tenant=cast.acme.id, payload={})


async def leave(task: "asyncio.Task[Any]", gate: GateCipher) -> None:
    """Cancel the task during its commit."""
    await asyncio.to_thread(gate.await_arrival)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.requirement("mrtr.claimed-once")
async def test_the_first_claim_wins_and_equal_responses_receive_its_outcome(
    two: list[Process], cast: Cast
) -> None:
    here, there = two
    asked = wanted(cast.acme.id)
    answer, end, again = record(), record(), record()
    won = await here.win(asked, answer)
    assert won.epoch == 1
    assert await in_database(recorded) == {answer.id}
    waiting = asyncio.create_task(there.claim(asked, [again]))
    await here.conclude(won, b'{"text":"done"}', [end])
    assert await waiting == Finished(b'{"text":"done"}')
    assert await here.claim(asked, [again]) == Finished(b'{"text":"done"}')
    assert await in_database(recorded) == {answer.id, end.id}, "what was not won is not recorded"
    kept = await in_database(Claim.objects.get)
    assert "done" not in kept.outcome
    assert kept.outcome.startswith("mcps1.")


@pytest.mark.requirement("mrtr.claimed-once")
async def test_different_responses_are_refused_before_and_after_the_round_ends(
    two: list[Process], cast: Cast
) -> None:
    here, there = two
    asked = wanted(cast.acme.id, "these")
    other = wanted(cast.acme.id, "those", call=asked.call)
    won = await here.win(asked)
    assert await there.claim(other, [record()]) == ClaimRefused("other-answers")
    await here.conclude(won, b"{}", [])
    assert (
        await gathered(there.claim(other, []), here.claim(other, []))
        == [ClaimRefused("other-answers")] * 2
    )
    assert await in_database(recorded) == set()


async def test_a_claim_of_another_tenant_is_refused_without_details(
    two: list[Process], cast: Cast
) -> None:
    here, _ = two
    asked = wanted(cast.acme.id)
    await here.conclude(await here.win(asked), b"secret", [])
    foreign = wanted(cast.globex.id, call=asked.call)
    assert await here.claim(foreign, [record()]) == ClaimRefused("claim-forgotten")


async def test_a_running_round_is_not_run_by_another_process(
    two: list[Process], cast: Cast
) -> None:
    here, there = two
    asked = wanted(cast.acme.id)
    await here.win(asked)
    await in_database(here.heartbeat.beat)
    await in_database(age_claims)
    for each in (there, here):
        await unavailable(each.claim(asked, [record()]))
    assert await in_database(recorded) == set()


async def test_the_claim_of_a_dead_process_is_taken_over_once(
    two: list[Process], cast: Cast
) -> None:
    dead, living = two
    asked = wanted(cast.acme.id)
    lost = await dead.win(asked)
    await in_database(dead.heartbeat.beat)
    await in_database(age_claims)
    await in_database(age_processes)
    mine = record()
    won = await living.win(asked, mine)
    assert won.epoch == 2
    assert await in_database(recorded) == {mine.id}
    late: Record = record()
    with pytest.raises(SupersededError):
        await dead.conclude(lost, b"late", [late])
    await living.conclude(won, b"in time", [])
    assert await dead.claim(asked, []) == Finished(b"in time")
    assert await in_database(recorded) == {mine.id}


async def test_one_of_many_waiting_requests_takes_over_from_a_dead_process_and_all_get_the_outcome(
    cast: Cast,
) -> None:
    with processes(3, UNHURRIED) as (dead, *living):
        asked = wanted(cast.acme.id)
        await dead.win(asked)
        await in_database(age_claims)

        async def run(process: Process) -> Any:
            claimed = await process.claim(asked, [record()])
            if isinstance(claimed, Won):
                await process.conclude(claimed, b"done", [])
            return claimed

        got = await gathered(*(run(each) for each in living * 4))
        (won,) = [each for each in got if isinstance(each, Won)]
        assert won.epoch == 2
        assert [each for each in got if each != won] == [Finished(b"done")] * 7
        assert len(await in_database(recorded)) == 1


async def test_an_unfinished_round_can_be_claimed_again_with_the_same_responses(cast: Cast) -> None:
    with processes(2, PATIENT) as (here, there):
        asked = wanted(cast.acme.id, "these")
        won = await here.win(asked)
        waiting = asyncio.create_task(here.claim(asked, []))
        await listened(here, asked, 1)
        await here.release(won)
        (again,) = await gathered(waiting)
        assert isinstance(again, Won)
        assert again.epoch == 2
        await here.release(again)
        other = wanted(cast.acme.id, "those", call=asked.call)
        assert await there.claim(other, []) == ClaimRefused("other-answers")
        assert (await there.win(asked)).epoch == 3
        await here.release(again)  # the claim is no longer theirs, which is not reported
        assert (await in_database(Claim.objects.get)).state == "running"


async def test_a_disconnect_during_the_commit_of_a_claim_releases_it(
    two: list[Process], cast: Cast, gate: GateCipher
) -> None:
    here, there = two
    asked = wanted(cast.acme.id)
    await leave(asyncio.create_task(here.claim(asked, [held(cast)])), gate)
    gate.open_gate()
    await here.writer.submit([record()])
    assert (await until_won(there, asked)).epoch == 2


async def test_a_disconnect_during_the_commit_of_the_outcome_still_ends_the_round(
    cast: Cast, gate: GateCipher
) -> None:
    with processes(1, PATIENT) as (here,):
        asked = wanted(cast.acme.id)
        won = await here.win(asked)
        await in_database(age_claims)
        await leave(asyncio.create_task(here.conclude(won, b"done", [held(cast)])), gate)
        waiting = asyncio.create_task(here.claim(asked, []))
        gate.open_gate()
        assert await gathered(waiting) == [Finished(b"done")]


async def test_without_a_writer_no_round_is_claimed(one: Process, cast: Cast) -> None:
    asked = wanted(cast.acme.id)
    await asyncio.to_thread(one.writer.stop, 20)
    await unavailable(one.claim(asked, [record()]))
    assert not await in_database(Claim.objects.exists)
    one.writer.start()
    assert (await one.win(asked)).epoch == 1


async def test_without_a_readable_database_no_round_is_run(
    two: list[Process], cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = wanted(cast.acme.id)
    await two[0].win(asked)

    def unreachable(*_: Any) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(stored, "find_claim", unreachable)
    await unavailable(two[1].claim(asked, []))


@pytest.mark.parametrize("settle", ["tidy", "release_all"])
async def test_a_round_whose_outcome_could_not_be_written_does_not_run_again(
    two: list[Process], cast: Cast, settle: str
) -> None:
    here = two[0]
    asked = wanted(cast.acme.id)
    won = await here.win(asked)
    await in_database(here.heartbeat.beat)
    await asyncio.to_thread(here.writer.stop, 20)
    with pytest.raises(RecordLostError):
        await here.conclude(won, b"done", [])
    here.writer.start()
    await in_database(age_claims)
    for each in two:
        await unavailable(each.claim(asked, []))
    await in_database(getattr(here.claiming, settle))
    for each in two:
        with pytest.raises(ProtocolError, match="result is no longer available"):
            await each.claim(asked, [])


async def test_a_claim_with_an_unknown_commit_is_released_until_the_commit_must_be_over(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    asked = wanted(cast.acme.id)
    with processes(1) as (there,):
        here = Process(give_up=0)
        here.claiming = Claiming(lambda: here.heartbeat.id, here.writer, QUICK, clock)
        here.writer.start()
        lose_connections(monkeypatch, after_the_commit)
        await unavailable(here.claiming.claim(asked, []))
        await in_database(here.heartbeat.beat)
        await in_database(age_claims)
        await unavailable(there.claim(asked, []))
        await in_database(here.claiming.tidy)
        assert (await there.win(asked)).epoch == 2
        assert here.claiming._doubtful
        clock.now += QUICK.doubt
        await in_database(here.claiming.tidy)
        assert not here.claiming._doubtful
        await asyncio.to_thread(here.writer.stop, 20)


async def test_a_stopping_process_releases_its_unfinished_claims(
    two: list[Process], cast: Cast
) -> None:
    here, there = two
    rounds = [wanted(cast.acme.id) for _ in range(3)]
    wins = [await here.win(each) for each in rounds]
    await here.conclude(wins[0], b"done", [])
    await in_database(here.heartbeat.beat)
    await asyncio.to_thread(here.writer.stop, 20)
    await in_database(here.claiming.release_all)
    assert await there.claim(rounds[0], []) == Finished(b"done")
    assert [(await there.win(each)).epoch for each in rounds[1:]] == [2, 2]


async def test_a_process_releases_claims_when_it_stops_and_housekeeping_deletes_expired_ones(
    served: Cast,
) -> None:
    process.start()
    asked = wanted(served.acme.id)
    assert isinstance(await claims.claim(asked, [record()]), Won)
    await process.stop()
    assert (await in_database(Claim.objects.get)).state == "released"
    await in_database(expire_claims, timedelta(days=2))
    await in_database(Housekeeping().work)
    assert not await in_database(Claim.objects.exists)


async def spoilt(asked: WantedClaim, here: Process, change: Callable[[], Any]) -> ProtocolError:
    """The error for the same input responses after the stored outcome was tampered with."""
    await here.conclude(await here.win(asked), b"done", [])
    await in_database(change)
    with pytest.raises(ProtocolError) as raised:
        await here.claim(asked, [record()])
    assert await in_database(recorded) == set()
    return raised.value


async def test_the_outcome_of_another_round_of_the_call_is_not_returned(
    one: Process, cast: Cast
) -> None:
    other = wanted(cast.acme.id, round=1)
    await one.conclude(await one.win(other), b"of the first", [])

    def move() -> None:
        Claim.objects.filter(round=2).update(outcome=Claim.objects.get(round=1).outcome)

    error = await spoilt(wanted(cast.acme.id, call=other.call), one, move)
    assert (error.code, error.message) == (INTERNAL_ERROR, claims.RESULT_UNAVAILABLE)


def _change() -> None:
    row = Claim.objects.get()
    Claim.objects.update(outcome=row.outcome[:-1] + ("A" if row.outcome[-1] != "A" else "B"))


def _lose_the_key() -> None:
    prefix, _, body = Claim.objects.get().outcome.split(".")
    Claim.objects.update(outcome=f"{prefix}.gone.{body}")


def _move() -> None:
    """Tell the outcome of another call."""
    theirs = Claim.objects.order_by("call").first()
    assert theirs is not None
    Claim.objects.update(outcome=theirs.outcome)


def _destroy_the_salt() -> None:
    TenantSecret.objects.update(wrapped_salt="")
    vault.forget_everything()


@pytest.mark.parametrize(
    ("spoil", "logged"),
    [
        (_change, "not-"),
        (_lose_the_key, "unknown-key"),
        (_move, "not-authentic"),
        (_destroy_the_salt, "bad-salt"),
    ],
)
async def test_an_unreadable_outcome_is_not_returned_and_its_round_not_run_again(
    one: Process,
    cast: Cast,
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[], None],
    logged: str,
) -> None:
    if spoil is _move:
        await one.conclude(await one.win(wanted(cast.acme.id)), b"theirs", [])
    error = await spoilt(wanted(cast.acme.id), one, spoil)
    assert (error.code, error.message) == (INTERNAL_ERROR, claims.RESULT_UNAVAILABLE)
    assert any(f"cannot be opened: {logged}" in each for each in caplog.messages)


async def test_an_outcome_that_cannot_be_sealed_still_ends_its_round(
    one: Process, cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    asked, end = wanted(cast.acme.id), record()
    await one.conclude(await one.win(asked), b"x" * 13_000_000, [end])
    assert "the outcome of a round could not be stored: too-large" in caplog.messages
    assert await in_database(recorded) == {end.id}
    with pytest.raises(ProtocolError, match="no longer available"):
        await one.claim(asked, [record()])


async def unavailable(claim: Awaitable[Any]) -> None:
    """Check that the claim is refused for now, with `retryAfter`."""
    with pytest.raises(ProtocolError) as raised:
        await asyncio.wait_for(claim, 20)
    assert raised.value.code == UNAVAILABLE
    assert raised.value.data == {"retryAfter": 2}


async def listened(process: Process, asked: WantedClaim, count: int) -> None:
    """Wait until `count` requests wait for the end of a round."""
    waiting = process.claiming._waiters._waiting
    async with asyncio.timeout(20):
        while True:
            if len(waiting.get((asked.call, asked.round), ())) == count:
                return
            await asyncio.sleep(0.001)  # between looks at the others


async def until_won(process: Process, asked: WantedClaim) -> Won:
    """Retry while the claim is refused for now, as clients do."""
    async with asyncio.timeout(20):
        while True:
            with suppress(ProtocolError):
                return await process.win(asked)
