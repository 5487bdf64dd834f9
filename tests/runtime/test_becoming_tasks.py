"""A call becomes a task: its round ends, and its input requests are published at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from mcphost.runtime.call import Delivery
from mcphost.runtime.journal import EMPTY, UNASKED, Answer, Journal
from mcphost.runtime.outcomes import InputRequest
from mcphost.runtime.ports import FixedPorts, Ports
from mcphost.runtime.questions import CapabilityMissingError
from mcphost.runtime.rounds import Round
from mcphost.runtime.steps import MisusedError
from mcphost.runtime.threads import ToolThreads
from mcphost.runtime.tool_tasks import Unwound
from tests.kinds.rounds import a_call, ports
from tests.runtime.rounds import (
    VERSION,
    a_round,
    answer,
    deferred,
    keys,
    question,
    required,
    unwinds,
)

TASK = a_call(elicitation={})._replace(version=VERSION, delivery=Delivery.TASK)


class Desk:
    """The ports of a round: whether its call may become a task, and what was published."""

    def __init__(self, *, defers: bool = True, leaves: bool = False) -> None:
        self.published: list[InputRequest] = []
        self.asked_whether = 0
        self._defers = defers
        self._leaves = leaves

    @property
    def ports(self) -> Ports:
        return FixedPorts(
            threads=ToolThreads(4),
            reason_to_move=lambda: "drain" if self._leaves else "",
            may_defer=self._may_defer,
            publish=self.published.append,
        )

    def _may_defer(self) -> bool:
        self.asked_whether += 1
        return self._defers


class Work:
    """A step that ends when the test says so, and counts its runs."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.runs = 0

    async def run(self) -> str:
        self.runs += 1
        self.begun.set()
        await self.may_end.wait()
        return "worked"

    def step(self, round: Round) -> Coroutine[Any, Any, Any]:
        return round.step("work", self.run, (), {})


async def ended(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run code of a round side by side; return the results and errors."""
    async with asyncio.timeout(10):
        return await asyncio.gather(*works, return_exceptions=True)


async def noted() -> str:
    return "noted"


async def test_a_round_that_makes_its_call_a_task_ends_with_its_journal() -> None:
    with a_round(outside=Desk().ports) as round:
        await round.step("note", noted, (), {})
        await unwinds(round.become_task())
        assert round.stopped
        assert round.unwinds
        journal = deferred(round).journal
    assert list(journal.recorded.values()) == ["noted"]
    assert journal.answers == {}


async def test_a_round_without_a_free_thread_passes_its_journal_to_the_task() -> None:
    with a_round(outside=Desk().ports) as round:
        await round.step("note", noted, (), {})
        outcome = round.deferred()
    assert outcome.instead_of_refusal
    assert list(outcome.journal.recorded.values()) == ["noted"]


async def test_a_task_continues_its_call_without_a_trace_in_the_journal() -> None:
    desk = Desk()
    with a_round(outside=desk.ports) as round:
        await unwinds(round.become_task())
        journal = deferred(round).journal
    assert journal == EMPTY
    for _ in range(2):
        with a_round(journal, desk.ports, TASK) as round:
            await round.become_task()
            await round.become_task()
            assert not round.stopped
    assert desk.asked_whether == 1, "a task has no need to know"


async def test_a_call_that_cannot_become_a_task_continues() -> None:
    desk = Desk(defers=False)
    with a_round(outside=desk.ports) as round:
        await round.become_task()
        assert not round.stopped
    assert desk.asked_whether == 1


async def test_a_pending_input_request_is_sent_first_and_the_next_round_makes_the_call_a_task() -> (
    None
):
    desk, name = Desk(), question("name")
    with a_round(outside=desk.ports) as round:
        first = [round.become_task(), round.ask(name)]
        assert all(isinstance(end, Unwound) for end in await ended(*first))
        outcome = required(round)
    assert keys(outcome) == ["name"]
    journal = outcome.journal.with_answer("name", answer(name, "Ada"))
    with a_round(journal, desk.ports) as round:
        assert await round.ask(name) == "Ada"
        await unwinds(round.become_task())
        assert deferred(round).journal.answers == journal.answers


async def test_becoming_a_task_waits_for_running_steps_and_records_them() -> None:
    desk, work = Desk(), Work()
    with a_round(outside=desk.ports) as round:
        running = asyncio.create_task(ended(work.step(round), round.become_task()))
        await work.begun.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert not running.done()
        work.may_end.set()
        assert (await running)[0] == "worked"
        journal = deferred(round).journal
    with a_round(journal, desk.ports, TASK) as round:
        assert await work.step(round) == "worked"
    assert work.runs == 1


async def test_no_input_is_requested_after_the_call_became_a_task() -> None:
    with a_round(outside=Desk().ports) as round:
        await unwinds(round.become_task())
        await unwinds(round.become_task())
        await unwinds(round.ask(question("late")))
        assert deferred(round).journal == EMPTY


async def test_becoming_a_task_inside_a_step_is_refused() -> None:
    with a_round(outside=Desk().ports) as round:
        with pytest.raises(MisusedError, match="the call is made a task inside another step"):
            await round.step("work", round.become_task, (), {})
        assert not round.stopped


async def test_an_input_request_is_published_while_a_concurrent_step_runs_once() -> None:
    desk, work, name = Desk(), Work(), question("name", "Who?")
    with a_round(EMPTY, desk.ports, TASK) as round:
        running = asyncio.create_task(ended(round.ask(name), work.step(round)))
        await work.begun.wait()
        assert desk.published == [
            InputRequest("name", "elicitation/create", {"message": "Who?"}, name.digest)
        ]
        assert not running.done()
        work.may_end.set()
        assert isinstance((await running)[0], Unwound)
        outcome = required(round)
    assert list(outcome.requests) == desk.published, "published once, and as it is asked in the end"
    journal = outcome.journal.with_answer("name", answer(name, "Ada"))
    with a_round(journal, desk.ports, TASK) as round:
        assert await ended(round.ask(name), work.step(round)) == ["Ada", "worked"]
        assert not round.stopped
    assert (work.runs, len(desk.published)) == (1, 1)


async def test_each_unanswered_input_request_is_published_once() -> None:
    desk = Desk()
    with a_round(outside=desk.ports) as round:
        await ended(*(round.ask(question(key)) for key in "abc"))
        await unwinds(round.ask(question("d")))
    assert [one.key for one in desk.published] == ["a", "b", "c"]


async def test_refused_or_already_answered_input_requests_are_not_published() -> None:
    desk, name = Desk(), question("name")
    given = Journal().with_answer("name", Answer(UNASKED, VERSION, {"text": "Ada"}))
    with a_round(given, desk.ports) as round:
        assert await round.ask(name) == "Ada"
        with pytest.raises(MisusedError):
            await round.ask(name)
        with pytest.raises(CapabilityMissingError):
            await round.ask(question("summary", capability="sampling"))
    assert desk.published == []


async def test_tasks_started_by_publishing_do_not_belong_to_the_tool() -> None:
    started: list[asyncio.Task[str]] = []
    go_on = asyncio.Event()

    async def tell() -> str:
        await go_on.wait()
        return "told"

    def publish(one: InputRequest) -> None:
        started.append(asyncio.create_task(tell()))

    call = a_call(elicitation={})._replace(version=VERSION)
    round = Round(call, EMPTY, ports()._replace(publish=publish))
    round.tasks.enter()
    try:
        await unwinds(round.ask(question("name")))
        assert not round.tasks.unfinished
        await round.tasks.end()
        go_on.set()
    finally:
        round.tasks.exit()
    assert await started[0] == "told"
