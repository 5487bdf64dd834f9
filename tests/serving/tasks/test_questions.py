"""Input requests of tasks: shown by `tasks/get`, answered by `tasks/update`, one per key."""

import asyncio
from typing import Any

import pytest

from tests.cast import Cast
from tests.serving.tasks.task_client import (
    BLUE,
    RED,
    TERMINAL,
    Follower,
    Task,
    accept,
    did,
    happened,
    release,
)

pytestmark = pytest.mark.django_db(transaction=True)

UNFIT = {"colour": accept(colour="mauve")}
SIZE = {"size": accept(size=2)}
NOT_OUTSTANDING = ("nope", "colour#2", "Colour", "", "#", "colour#1", "x" * 10_000)
OF_NO_QUESTION: tuple[dict[str, Any], ...] = (
    {},
    {"action": "perhaps"},
    {"action": "accept", "content": 5},
    {"role": "assistant", "content": {"type": "text", "text": "red"}, "model": "m"},
)


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def _asking(owner: Follower, tool: str = "paint", *keys: str, **arguments: Any) -> Task:
    """A task that has asked its questions."""
    task = await owner.begin(tool, **arguments)
    await task.asked(*(keys or ("colour",)))
    return task


@pytest.mark.requirement("tasks.partial")
async def test_responses_may_be_sent_together_separately_or_concurrently(owner: Follower) -> None:
    answers = {**RED, **SIZE}
    for first, other in (("colour", "size"), ("size", "colour")):
        task = await _asking(owner, "both", "colour", "size")
        await task.update({first: answers[first]})
        seen = await task.get()
        assert seen["status"] == "input_required"
        assert set(seen["inputRequests"]) == {other}
        await task.update({other: answers[other]})
        assert await task.text() == "red 2"
    for updates in ((answers,), (RED, SIZE)):
        task = await _asking(owner, "both", "colour", "size")
        await asyncio.gather(*(task.update(each) for each in updates))
        assert await task.text() == "red 2"


async def test_the_first_of_several_responses_to_one_input_request_counts(owner: Follower) -> None:
    task = await _asking(owner, "both", "colour", "size")
    for answers in (RED, RED, BLUE, {**BLUE, **SIZE}, RED):
        await task.update(answers)
    assert await task.text() == "red 2"
    task = await _asking(owner)
    await asyncio.gather(*(task.update(answer) for answer in (RED, BLUE) * 3))
    text = await task.text()
    assert text in ("it is red", "it is blue")
    assert did() == [text.replace("is ", "")]


@pytest.mark.requirement("tasks.ignored")
async def test_responses_to_keys_that_are_not_outstanding_are_acknowledged_and_ignored(
    owner: Follower,
) -> None:
    task = await _asking(owner)
    asked = (await task.get())["inputRequests"]
    for answers in ({}, *({key: accept(colour="green")} for key in NOT_OUTSTANDING)):
        await task.update(answers)
        seen = await task.get()
        assert (seen["status"], seen["inputRequests"]) == ("input_required", asked), answers
    await task.update({**dict.fromkeys(NOT_OUTSTANDING, accept(colour="green")), **RED})
    assert await task.text() == "it is red"


async def test_an_invalid_response_is_requested_again_under_a_new_key(
    owner: Follower,
) -> None:
    task = await _asking(owner, "both", "colour", "size")
    form = (await task.get())["inputRequests"]["colour"]["params"]["requestedSchema"]
    unfit = (UNFIT["colour"], accept(), accept(size=1), {"action": "accept"})
    await task.update({"colour": unfit[0]})
    assert set((await task.get())["inputRequests"]) >= {"size"}
    await task.update({"size": accept(size=10)})
    await task.asked("colour#2", "size#2")
    await task.update({**RED, "size": accept(size=1)})
    await task.asked("colour#2", "size#2")
    await task.update({"size#2": accept(size=9), "colour#2": unfit[1]})
    for number, answer in enumerate((*unfit[2:], RED["colour"]), 3):
        asked = await task.asked(f"colour#{number}")
        assert asked[f"colour#{number}"]["params"]["requestedSchema"] == form
        await task.update({f"colour#{number}": answer})
    assert await task.text() == "red 9"


async def test_malformed_responses_are_refused_and_change_nothing(
    owner: Follower,
) -> None:
    task = await _asking(owner, "both", "colour", "size")
    asked = (await task.get())["inputRequests"]
    rows: list[dict[str, Any]] = [{}, {"inputResponses": {"colour": []}}]
    for wrong in (None, "red", 5, True, [RED]):
        rows += [{"inputResponses": wrong}, {"inputResponses": {"colour": wrong}}]
    rows += [{"inputResponses": {**SIZE, "colour": answer}} for answer in OF_NO_QUESTION]
    for params in rows:
        reply = await owner.send("tasks/update", {"taskId": task.id, **params})
        assert (reply.status, reply.error["code"]) == (400, -32602), params
        assert "inputResponses" in reply.error["message"]
    seen = await task.get()
    assert (seen["status"], seen["inputRequests"]) == ("input_required", asked)


async def test_a_response_before_its_input_request_is_ignored(owner: Follower) -> None:
    task = await owner.begin("paint_later")
    await happened("running")
    await task.update(BLUE)
    release()
    await task.asked("colour")
    await task.update(RED)
    assert await task.text() == "it is red"


# A question that is asked while other code of the same round still runs.


async def _works_and_asks(owner: Follower, tool: str = "asks_while_it_works") -> Task:
    task = await owner.begin(tool)
    await happened("running")
    await task.asked("colour")
    assert did() == ["work began"]
    return task


async def test_an_input_request_is_shown_during_and_after_a_concurrent_step(
    owner: Follower,
) -> None:
    task = await _works_and_asks(owner)
    release()
    seen = await task.until(lambda seen: did() == ["work began", "work ended"])
    assert seen["status"] not in TERMINAL
    await task.asked("colour")
    await task.update(UNFIT)
    await task.asked("colour#2")
    await task.update({"colour#2": RED["colour"]})
    assert await task.text() == "work red"
    assert did() == ["work began", "work ended"]
