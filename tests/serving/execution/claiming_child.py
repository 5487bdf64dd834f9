"""A process that claims rounds and prints the results. Run by test_claims_races.py.

`<tenant> <name> <count>` claims and ends `count` rounds once it has read a line. Then it claims the
round HELD, which never ends, and claims and ends one round after the other, for ever.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from uuid import UUID

from mcphost.serving.execution.claims import Claimed, Won
from tests.serving.execution.claimers import UNHURRIED, Process, answer, ended, numbered, processes

AT_ONCE = 8
HELD = 1_000_000
"""The number of a round that never ends."""


def say(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


async def end(process: Process, tenant: UUID, name: str, first: int) -> None:
    """Claim and end rounds, for ever: their numbers are `first` and those after it."""
    numbers = iter(range(first, HELD))

    async def one_after_the_other() -> None:
        for number in numbers:
            won = await process.win(numbered(tenant, number), answer(number))
            say("won", number)
            await process.conclude(won, f"{name} {number}".encode(), [ended(number)])
            say("ended", number)

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))


async def racing(
    process: Process, tenant: UUID, name: str, count: int
) -> AsyncIterator[tuple[int, Claimed]]:
    """Claim each round, end it if it was won, and yield the round's number and the result."""
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        wins = (run(process, tenant, name, number) for number in numbers)
        for number, claimed in zip(numbers, await asyncio.gather(*wins), strict=True):
            yield number, claimed


async def run(process: Process, tenant: UUID, name: str, number: int) -> Claimed:
    claimed = await process.claim(numbered(tenant, number), [answer(number)])
    if isinstance(claimed, Won):
        await process.conclude(claimed, f"{name} {number}".encode(), [ended(number)])
    return claimed


async def main(tenant: UUID, name: str, count: int) -> None:
    with processes(1, UNHURRIED) as (process,):
        await asyncio.to_thread(process.heartbeat.beat)
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        async for number, claimed in racing(process, tenant, name, count):
            say(type(claimed).__name__, number)
        held = await process.win(numbered(tenant, HELD), answer(HELD))
        say("held", held.epoch)
        await end(process, tenant, name, count)


def start() -> None:
    asyncio.run(main(UUID(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
