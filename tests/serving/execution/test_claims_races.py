"""Processes that race for the same rounds, and one that is killed in the middle."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import IO
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

from mcphost.calls.models import Claim
from mcphost.protocol.errors import ProtocolError
from mcphost.serving.database import in_database
from mcphost.serving.execution.claims import Claimed, ClaimRefused, Finished, WantedClaim, Won
from tests.audit.databases import record
from tests.audit.writer.test_writer import in_background
from tests.cast import Cast
from tests.serving.execution.claimers import (
    UNHURRIED,
    Process,
    age_claims,
    age_processes,
    answer,
    ended,
    gathered,
    numbered,
    processes,
    recorded,
    targets,
    wanted,
)
from tests.serving.execution.claiming_child import racing

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 40
CHILD = "import django; django.setup(); from tests.serving.execution import claiming_child as c; c.start()"


async def claim_and_end(process: Process, asked: WantedClaim, name: str) -> Claimed:
    claimed = await process.claim(asked, [record()])
    if isinstance(claimed, Won):
        await process.conclude(claimed, name.encode(), [])
    return claimed


@pytest.mark.parametrize("answers", [("these", "these"), ("these", "those")])
def test_two_threads_that_race_have_one_winner_for_each_round(
    cast: Cast, answers: tuple[str, str]
) -> None:
    rounds = [wanted(cast.acme.id) for _ in range(ROUNDS)]

    def racer(process: Process, mine: str) -> list[Claimed]:
        async def both_times() -> list[Claimed]:
            asked = [wanted(cast.acme.id, mine, call=each.call) for each in rounds]
            return await gathered(*(claim_and_end(process, each, mine) for each in asked * 2))

        return asyncio.run(both_times())

    with processes(2, UNHURRIED) as (here, there):
        other = in_background(lambda: racer(there, answers[1]))
        got = [racer(here, answers[0]), other()]
    for number in range(ROUNDS):
        of_one = [(side, got[side][number + again]) for side in (0, 1) for again in (0, ROUNDS)]
        ((winner, _),) = [each for each in of_one if isinstance(each[1], Won)]
        for side, claimed in of_one:
            same = answers[side] == answers[winner]
            end = Finished(answers[winner].encode()) if same else ClaimRefused("other-answers")
            assert isinstance(claimed, Won) or claimed == end
    assert len(recorded()) == ROUNDS, "what did not win is not recorded"


@contextmanager
def child(tenant: UUID, *words: str) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    """Another process on the same database, and its output."""
    there = connection.settings_dict
    where = f"sqlite:///{there['NAME']}"
    if connection.vendor == "postgresql":
        address = f"{there['HOST']}:{there['PORT'] or 5432}/{there['NAME']}"
        where = f"postgres://{there['USER']}:{there['PASSWORD']}@{address}"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "mcphost.settings",
        "DATABASE_URL": where,
        "PYTHONPATH": str(settings.BASE),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tenant), "child", *words],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        process.kill()
        process.communicate(timeout=20)


def test_two_processes_that_race_have_one_winner_for_each_round(cast: Cast) -> None:
    tenant = cast.acme.id

    async def race(process: Process) -> list[Claimed]:
        return [claimed async for _, claimed in racing(process, tenant, "parent", ROUNDS)]

    with child(tenant, "race", str(ROUNDS)) as (other, said), processes(1, UNHURRIED) as (here,):
        assert said.readline() == "ready\n"
        assert other.stdin is not None
        other.stdin.write("go\n")
        other.stdin.flush()
        mine = asyncio.run(race(here))
        theirs = [said.readline().split() for _ in range(ROUNDS)]
    for number, (claimed, (word, _)) in enumerate(zip(mine, theirs, strict=True)):
        assert sorted([type(claimed).__name__, word]) == ["Finished", "Won"], number
    assert Counter(targets()) == Counter(
        f"{what} {number}" for number in range(ROUNDS) for what in ("answer", "end")
    )


def test_the_round_of_a_process_that_was_killed_is_run_by_another(cast: Cast) -> None:
    asked = numbered(cast.acme.id, 0)
    with child(cast.acme.id, "hold") as (killed, said):
        assert said.readline() == "won 1\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait(20)
    assert targets() == ["answer 0"]

    async def stand_in(process: Process) -> None:
        with pytest.raises(ProtocolError, match="being processed"):
            await process.claim(asked, [])
        await in_database(age_claims)
        with pytest.raises(ProtocolError, match="being processed"):
            await process.claim(asked, [])
        await in_database(age_processes)
        won = await process.win(asked)
        assert won.epoch == 2
        await process.conclude(won, b"done", [ended(0)])
        assert await process.claim(asked, []) == Finished(b"done")

    with processes(1) as (here,):
        asyncio.run(stand_in(here))
    assert sorted(targets()) == ["answer 0", "end 0"]


def _wait_for_its_last_commit() -> None:
    """Wait until PostgreSQL is done with what a killed process sent last."""
    if connection.vendor != "postgresql":
        return
    ends = monotonic() + 20
    busy = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND state <> 'idle'"
    )
    with connection.cursor() as cursor:
        while monotonic() < ends:
            cursor.execute(busy)
            if cursor.fetchone() == (0,):
                return
    pytest.fail("PostgreSQL still works for the killed process")


@pytest.mark.parametrize("count", [1, 150])
def test_killed_anywhere_no_round_that_ended_runs_again_and_every_other_can(
    cast: Cast, count: int
) -> None:
    tenant = cast.acme.id
    with child(tenant, "end") as (killed, said):
        lines = [said.readline().split() for _ in range(count)]
        killed.send_signal(signal.SIGKILL)
        lines += [line.split() for line in said.readlines() if line.endswith("\n")]
        killed.wait(20)
    _wait_for_its_last_commit()
    told = {(word, int(number)) for word, number in lines}
    last = max(number for _, number in told) + 20
    before = Counter(targets())
    finished = set(Claim.objects.filter(state="finished").values_list("call", flat=True))
    age_claims()
    age_processes()

    async def again(process: Process) -> list[Claimed]:
        asked = [numbered(tenant, number) for number in range(last)]
        return await gathered(*(process.claim(each, [answer(0)]) for each in asked))

    with processes(1, UNHURRIED) as (here,):
        got = asyncio.run(again(here))
    for number, claimed in enumerate(got):
        answered, over = before[f"answer {number}"], before[f"end {number}"]
        assert (UUID(int=number) in finished) == bool(over), "the end and its record land together"
        assert isinstance(claimed, Finished if over else Won)
        if isinstance(claimed, Won):
            assert claimed.epoch == 1 + answered, "the claim and its record land together"
        else:
            assert claimed.outcome == f"child {number}".encode()
        assert answered >= (("won", number) in told)
        assert over >= (("ended", number) in told)
    assert set(before.values()) == {1}
