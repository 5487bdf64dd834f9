"""What can happen to one task, in any order, one after the other and at once.

Clients get, update and cancel it, its questions expire, the process that runs it dies, and in the end
it may expire itself.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, repeat
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.audit.writer.writer import writer
from mcphost.calls.ownership import NO_OWNER, Lease
from mcphost.calls.states import QuestionState
from mcphost.feed.nodes import heartbeat
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution.owned_task import running_tasks
from mcphost.tasks import changes, services
from mcphost.tasks.models import Task as TaskModel
from mcphost.tasks.models import TaskQuestion
from mcphost.tasks.states import TaskState
from tests.cast import Cast
from tests.rounds.conftest import module
from tests.serving.tasks.task_client import (
    METHODS,
    PATIENCE,
    TERMINAL,
    Follower,
    Seen,
    Task,
    accept,
    did,
    unknown,
)

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = int(os.environ.get("EXAMPLES", "40"))
KEYS = ("colour", "size", "colour#2", "size#2", "colour#3", "never")
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "red": accept(colour="red"),
    "blue": accept(colour="blue"),
    "three": accept(size=3),
    "unfit": accept(colour="mauve", size=10),
    "declined": {"action": "decline"},
}
FIT = {"colour": accept(colour="green"), "size": accept(size=9)}

Command = tuple[str, Mapping[str, str]]
"""A method, and for an update which answer is sent for each key."""

UPDATES = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(list(ANSWERS)), max_size=3)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.just(("get", {})),
    st.tuples(st.just("update"), UPDATES),
    st.tuples(st.just("update"), UPDATES),
    st.just(("cancel", {})),
    st.just(("expire", {})),
    st.just(("crash", {})),
)
ORDERS = st.lists(st.lists(COMMANDS, min_size=1, max_size=3), max_size=6)
"""Each inner list is sent at once, and the next when all of it was answered."""


@dataclass
class Oracle:
    """What was seen of one task, checked with every look."""

    questions: dict[str, Any] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    end: Seen | None = None
    cancelled: bool = False
    expired: bool = False
    crashed: bool = False
    sent: set[tuple[str, str]] = field(default_factory=set)

    def look(self, seen: Seen) -> None:
        """Check a look that began after the last had ended."""
        if self.end is not None:
            assert seen == self.end, "it left a state that is an end"
        if seen["status"] in TERMINAL:
            self.end = seen
            assert "inputRequests" not in seen
        assert (seen["status"] == "input_required") == ("inputRequests" in seen)
        assert ("result" in seen) == (seen["status"] == "completed")
        asked = seen.get("inputRequests", {})
        assert not asked.keys() & self.gone, "a key was used again"
        for key, question in asked.items():
            assert self.questions.setdefault(key, question) == question
        self.gone |= self.questions.keys() - asked.keys()

    def judge(self) -> None:
        """Check the end with all that was sent."""
        assert self.end is not None
        painted = did()
        assert len(set(painted)) <= 1
        assert self.crashed or len(painted) <= 1
        if self.end["status"] == "cancelled":
            assert self.cancelled
            return
        if self.end["status"] == "failed":
            assert self.crashed
            assert "several times" in self.end["error"]["message"]
            return
        assert self.end["status"] == "completed"
        text = self.end["result"]["content"][0]["text"]
        if self.end["result"].get("isError"):
            assert self.expired or "declined" in text
            assert self.expired or "declined" in {answer for _, answer in self.sent}
            assert painted == []
            return
        assert {text.replace("is ", "").replace(", size", "")} == set(painted)
        _, colour, size = painted[0].split()
        assert self._was_sent("colour", {"green": "fit"}.get(colour, colour))
        assert self._was_sent("size", {"3": "three", "9": "fit"}[size])

    def _was_sent(self, name: str, answer: str) -> bool:
        return any(key.partition("#")[0] == name and sent == answer for key, sent in self.sent)


async def _do(task: Task, oracle: Oracle, command: Command) -> None:
    match command:
        case ("update", answers):
            oracle.sent |= set(answers.items())
            await task.update({key: ANSWERS[answer] for key, answer in answers.items()})
        case ("cancel", _):
            oracle.cancelled = True
            await task.cancel()
        case ("expire", _):
            oracle.expired = True
            await in_database(_expire_questions, UUID(hex=task.id))
            process.runner.on_gap()
        case ("crash", _):
            oracle.crashed = True
            await _crash(UUID(hex=task.id))
        case _:
            await task.get()


def _expire_questions(task: UUID) -> None:
    """Let their time be over, and look as each process does every few seconds."""
    asked = TaskQuestion.objects.filter(task=task, state=QuestionState.OPEN)
    asked.update(expires_at=timezone.now() - timedelta(seconds=1))
    services.expire_questions()
    services.ready()


async def _crash(task: UUID) -> None:
    """End the round as a killed process does; another process finds that out."""
    running_tasks.cancel(task, "the process is killed")
    await running_tasks.over(task)
    await _written()
    await in_database(_free, task)
    process.runner.on_gap()


async def _written() -> None:
    """Wait until what the round has submitted is written: a process that was killed writes nothing later."""
    nobody = Lease(uuid4(), uuid4(), uuid4(), 1)
    assert not await writer.submit_if(changes.start(nobody, 1, ()))


def _free(task: UUID) -> None:
    # What `free_orphans` does once the heartbeat of the owner is too old.
    mine = TaskModel.objects.filter(id=task, state=TaskState.WORKING, owner=heartbeat.id)
    mine.update(owner=NO_OWNER, due_at=timezone.now())


def _forget_all() -> None:
    TaskModel.objects.all().delete()
    TaskQuestion.objects.all().delete()


def _outlive(task: UUID) -> None:
    TaskModel.objects.filter(id=task).update(expires_at=timezone.now() - timedelta(seconds=1))


async def _over(task: Task) -> None:
    """Let the time of the task be over: it is unknown from then on, whatever it did."""
    await in_database(_outlive, UUID(hex=task.id))
    for forget in (bool, services.prune):
        await in_database(forget)
        for method in METHODS:
            never = unknown(await task.follower.about(method, "0" * 32))
            assert unknown(await task.follower.about(method, task.id)) == never
    async with asyncio.timeout(PATIENCE):
        await running_tasks.all_over()
    assert not await in_database(TaskModel.objects.exists)
    assert not await in_database(TaskQuestion.objects.exists)


async def _finish(task: Task, oracle: Oracle) -> None:
    """Answer whatever is outstanding until the task has ended."""
    pauses = chain((0.005, 0.01, 0.02, 0.05), repeat(0.1))  # seldom enough for the limit of polls
    async with asyncio.timeout(PATIENCE):
        while oracle.end is None:
            seen = await task.get()
            oracle.look(seen)
            answers = {key: FIT[key.partition("#")[0]] for key in seen.get("inputRequests", ())}
            if answers:
                oracle.sent |= {(key, "fit") for key in answers}
                await task.update(answers)
            else:
                if oracle.crashed:
                    process.runner.on_gap()  # the regular look of another process
                await asyncio.sleep(next(pauses))  # between polls, as clients do


async def _follow(
    follower: Follower, order: Sequence[Sequence[Command]], *, outlived: bool
) -> None:
    module("tasks").did.clear()
    await in_database(_forget_all)  # what an example before this left that failed
    task, oracle = await follower.begin("paint_sized"), Oracle()
    for at_once in order:
        await asyncio.gather(*(_do(task, oracle, command) for command in at_once))
        oracle.look(await task.get())
    if outlived:
        await _over(task)
        return
    await _finish(task, oracle)
    for command in (("get", {}), ("update", {"colour": "red"}), ("cancel", {})):
        await _do(task, Oracle(), command)
        oracle.look(await task.get())
    oracle.judge()


@pytest.mark.requirement("tasks.keys")
def test_a_task_ends_once_and_has_one_input_request_per_key(tasks: Cast) -> None:
    follower = Follower(tasks.owner.mcp_token)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(ORDERS, st.booleans())
    def follows(order: Sequence[Sequence[Command]], outlived: bool) -> None:
        loop.run(_follow(follower, order, outlived=outlived))

    with asyncio.Runner() as loop:
        follows()
        loop.run(process.stop())
