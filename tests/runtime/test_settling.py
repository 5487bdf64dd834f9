"""Concurrent questions are sent together: none unwinds before the round has settled."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from mcphost.runtime.rounds import Round
from mcphost.runtime.settling import TURNS
from mcphost.runtime.tool_tasks import Unwound
from tests.runtime.rounds import a_round, keys, question, required


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def asked(round: Round, *works: Coroutine[Any, Any, Any]) -> list[str]:
    """Return the keys of the questions that were asked when all works have ended."""
    await asyncio.wait([asyncio.create_task(work) for work in works], timeout=10)
    return keys(required(round))


async def test_a_tool_without_other_tasks_settles_at_once() -> None:
    with a_round() as round:
        work = round.ask(question("a"))
        with pytest.raises(Unwound):
            work.send(None)
        assert keys(required(round)) == ["a"]


async def test_an_input_request_within_sixteen_loop_turns_is_sent_with_the_earlier_one() -> None:
    async def late(round: Round) -> None:
        await turns(TURNS - 2)
        await round.ask(question("b"))

    with a_round() as round:
        assert await asked(round, round.ask(question("a")), late(round)) == ["a", "b"]


async def test_an_input_request_after_sixteen_loop_turns_waits_for_a_later_round() -> None:
    async def later(round: Round) -> None:
        await turns(TURNS + 3)
        await round.ask(question("b"))

    with a_round() as round:
        assert await asked(round, round.ask(question("a")), later(round)) == ["a"]


async def test_each_input_request_restarts_the_turn_count() -> None:
    async def after(count: int, key: str, round: Round) -> None:
        await turns(count)
        await round.ask(question(key))

    with a_round() as round:
        works = [after(10 * number, str(number), round) for number in range(5)]
        assert await asked(round, *works) == ["0", "1", "2", "3", "4"]


async def test_a_running_step_delays_unwinding_and_stops_the_turn_count(monkeypatch):
    go_on, scheduled = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    async def slow() -> str:
        await go_on.wait()
        return "done"

    async def steps(round: Round) -> None:
        await round.step("slow", slow, (), {})
        await round.ask(question("b"))

    with a_round() as round:
        tasks = [asyncio.create_task(round.ask(question("a"))), asyncio.create_task(steps(round))]
        await turns(3 * TURNS)
        soon = loop.call_soon
        monkeypatch.setattr(loop, "call_soon", lambda *a, **k: scheduled.append(a) or soon(*a, **k))
        await turns(3 * TURNS)
        assert not any("_turn" in repr(what) for what in scheduled)
        assert not any(task.done() for task in tasks)
        go_on.set()
        await asyncio.wait(tasks, timeout=10)
        assert keys(required(round)) == ["a", "b"]
        assert "step slow" in next(iter(required(round).journal.recorded))


async def test_an_input_request_of_a_cancelled_task_is_still_sent() -> None:
    with a_round() as round:
        first = asyncio.create_task(round.ask(question("a")))
        await turns(2)
        first.cancel()
        await turns(3 * TURNS)
        assert keys(required(round)) == ["a"]
        second = asyncio.create_task(round.ask(question("b")))
        await asyncio.wait([second], timeout=10)
        assert isinstance(second.exception(), Unwound)
        assert keys(required(round)) == ["a", "b"]


@pytest.mark.asyncio(loop_scope="function")
async def test_an_unwinding_that_is_never_awaited_logs_no_error() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
    with a_round() as round:
        asyncio.create_task(round.ask(question("a")))  # noqa: RUF006 - left behind on purpose
        await turns(3 * TURNS)
        assert not round.tasks.unfinished
    assert complaints == []
