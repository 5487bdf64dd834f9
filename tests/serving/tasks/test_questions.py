"""Questions of tasks: shown by `tasks/get`, answered by `tasks/update`, each key for one question."""

import asyncio
from typing import Any

import pytest

from tests.cast import Cast
from tests.serving.tasks.following import (
    BLUE,
    RED,
    TERMINAL,
    Follower,
    accept,
    did,
    happened,
    release,
)

pytestmark = pytest.mark.django_db(transaction=True)

UNFIT = {"colour": accept(colour="mauve")}


@pytest.fixture
def owner(tasks: Cast) -> Follower:
    return Follower(tasks.owner.mcp_token)


async def test_a_task_asks_and_goes_on_with_the_answer(owner: Follower) -> None:
    task = await owner.begin("paint", what="the door")
    questions = await task.asked("colour")
    assert questions["colour"]["method"] == "elicitation/create"
    params = questions["colour"]["params"]
    assert params["message"] == "Which colour for the door?"
    assert params["requestedSchema"]["properties"]["colour"]["enum"] == ["red", "green", "blue"]
    assert (await task.get())["inputRequests"] == questions
    await task.update(RED)
    assert await task.text() == "the door is red"
    assert "inputRequests" not in await task.get()
    assert did() == ["the door red"]


async def test_questions_in_turn_have_keys_of_their_own(owner: Follower) -> None:
    task = await owner.begin("paint_sized")
    await task.asked("colour")
    await task.update(BLUE)
    await task.asked("size")
    await task.update({"size": accept(size=3)})
    assert await task.text() == "it is blue, size 3"
    assert did() == ["it blue 3"]


async def test_all_outstanding_questions_are_shown_and_answered_at_once(owner: Follower) -> None:
    task = await owner.begin("both")
    await task.asked("colour", "size")
    await task.update({**RED, "size": accept(size=2)})
    assert await task.text() == "red 2"


@pytest.mark.parametrize("first", ["colour", "size"])
@pytest.mark.requirement("tasks.partial")
async def test_answers_may_come_one_by_one(owner: Follower, first: str) -> None:
    answers = {**RED, "size": accept(size=2)}
    (other,) = answers.keys() - {first}
    task = await owner.begin("both")
    await task.asked("colour", "size")
    await task.update({first: answers[first]})
    seen = await task.get()
    assert seen["status"] == "input_required"
    assert set(seen["inputRequests"]) == {other}
    await task.update({other: answers[other]})
    assert await task.text() == "red 2"


async def test_answers_one_by_one_may_come_at_the_same_time(owner: Follower) -> None:
    task = await owner.begin("both")
    await task.asked("colour", "size")
    await asyncio.gather(task.update(RED), task.update({"size": accept(size=2)}))
    assert await task.text() == "red 2"


async def test_the_same_answer_again_changes_nothing(owner: Follower) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await task.update(RED)
    await task.update(RED)
    assert await task.text() == "it is red"
    await task.update(RED)
    assert await task.text() == "it is red"
    assert did() == ["it red"]


async def test_of_two_answers_the_first_counts(owner: Follower) -> None:
    task = await owner.begin("both")
    await task.asked("colour", "size")
    await task.update(RED)
    await task.update(BLUE)
    await task.update({**BLUE, "size": accept(size=2)})
    assert await task.text() == "red 2"


async def test_of_two_answers_at_once_one_counts(owner: Follower) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await asyncio.gather(*(task.update(answer) for answer in (RED, BLUE) * 3))
    text = await task.text()
    assert text in ("it is red", "it is blue")
    assert did() == [text.replace("is ", "")]


@pytest.mark.parametrize("key", ["nope", "colour#2", "Colour", "", "#", "colour#1", "x" * 10_000])
@pytest.mark.requirement("tasks.ignored")
async def test_keys_that_are_not_outstanding_are_acknowledged_and_ignored(
    owner: Follower, key: str
) -> None:
    task = await owner.begin("paint")
    asked = await task.asked("colour")
    await task.update({key: accept(colour="green")})
    seen = await task.get()
    assert (seen["status"], seen["inputRequests"]) == ("input_required", asked)
    await task.update({key: accept(colour="green"), **RED})
    assert await task.text() == "it is red"


async def test_an_update_without_answers_is_acknowledged(owner: Follower) -> None:
    task = await owner.begin("paint")
    asked = await task.asked("colour")
    await task.update({})
    assert (await task.get())["inputRequests"] == asked


@pytest.mark.parametrize(
    "answer",
    [
        UNFIT["colour"],
        accept(),
        accept(size=1),
        {"action": "accept"},
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_for_again_under_a_new_key(
    owner: Follower, answer: dict[str, Any]
) -> None:
    task = await owner.begin("paint")
    first = await task.asked("colour")
    await task.update({"colour": answer})
    second = await task.asked("colour#2")
    form = first["colour"]["params"]["requestedSchema"]
    assert second["colour#2"]["params"]["requestedSchema"] == form
    assert did() == []
    await task.update(BLUE)
    assert set((await task.get())["inputRequests"]) == {"colour#2"}
    await task.update({"colour#2": RED["colour"]})
    assert await task.text() == "it is red"
    assert did() == ["it red"]


async def test_each_further_time_has_a_new_key_too(owner: Follower) -> None:
    task = await owner.begin("both")
    await task.asked("colour", "size")
    await task.update({**UNFIT, "size": accept(size=9)})
    for number in range(2, 5):
        await task.asked(f"colour#{number}")
        await task.update({f"colour#{number}": UNFIT["colour"]})
    await task.asked("colour#5")
    await task.update({"colour#5": RED["colour"]})
    assert await task.text() == "red 9"


async def test_answers_that_do_not_fit_are_asked_for_again_each_under_its_key(
    owner: Follower,
) -> None:
    task = await owner.begin("both")
    await task.asked("colour", "size")
    await task.update(UNFIT)
    assert set((await task.get())["inputRequests"]) >= {"size"}
    await task.update({"size": accept(size=10)})
    await task.asked("colour#2", "size#2")
    await task.update({**RED, "size": accept(size=1)})
    await task.asked("colour#2", "size#2")
    await task.update({"colour#2": RED["colour"], "size#2": accept(size=9)})
    assert await task.text() == "red 9"


@pytest.mark.parametrize("responses", [None, [], "red", 5, True, [RED]])
async def test_answers_of_the_wrong_shape_are_refused_and_change_nothing(
    owner: Follower, responses: Any
) -> None:
    task = await owner.begin("paint")
    asked = await task.asked("colour")
    for params in ({"inputResponses": responses}, {"inputResponses": {"colour": responses}}, {}):
        reply = await owner.send("tasks/update", {"taskId": task.id, **params})
        assert (reply.status, reply.error["code"]) == (400, -32602)
        assert "inputResponses" in reply.error["message"]
    seen = await task.get()
    assert (seen["status"], seen["inputRequests"]) == ("input_required", asked)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"action": "perhaps"},
        {"action": "accept", "content": 5},
        {"role": "assistant", "content": {"type": "text", "text": "red"}, "model": "m"},
    ],
)
async def test_an_answer_that_is_none_of_any_question_is_refused(
    owner: Follower, answer: dict[str, Any]
) -> None:
    task = await owner.begin("both")
    asked = await task.asked("colour", "size")
    responses = {"size": accept(size=1), "colour": answer}
    reply = await owner.send("tasks/update", {"taskId": task.id, "inputResponses": responses})
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert (await task.get())["inputRequests"] == asked


async def test_a_question_that_was_declined_ends_the_tool_as_it_does_in_a_call(
    owner: Follower,
) -> None:
    task = await owner.begin("paint")
    await task.asked("colour")
    await task.update({"colour": {"action": "decline"}})
    assert "declined" in await task.failure()
    assert did() == []


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_tool_may_go_on_without_an_answer(owner: Follower, action: str) -> None:
    task = await owner.begin("survey")
    await task.asked("colour")
    await task.update({"colour": {"action": action}})
    assert await task.text() == action


async def test_answers_after_the_end_are_acknowledged_and_change_nothing(owner: Follower) -> None:
    task = await owner.begin("always", text="a")
    ended = await task.ended()
    await task.update(RED)
    assert await task.get() == ended


async def test_an_answer_before_its_question_is_none(owner: Follower) -> None:
    task = await owner.begin("paint_later")
    await happened("running")
    await task.update(BLUE)
    release()
    await task.asked("colour")
    await task.update(RED)
    assert await task.text() == "it is red"


# A question that is asked while other code of the same round still runs.


async def test_a_question_is_shown_while_a_step_beside_it_runs(owner: Follower) -> None:
    task = await owner.begin("asks_while_it_works")
    await happened("running")
    await task.asked("colour")
    assert did() == ["work began"]
    release()
    seen = await task.until(lambda seen: did() == ["work began", "work ended"])
    assert seen["status"] not in TERMINAL
    await task.asked("colour")
    await task.update(RED)
    assert await task.text() == "work red"
    assert did() == ["work began", "work ended"]


async def test_it_may_be_answered_while_the_step_beside_it_runs(owner: Follower) -> None:
    task = await owner.begin("asks_while_it_works")
    await happened("running")
    await task.asked("colour")
    await task.update(RED)
    seen = await task.until(lambda seen: not seen.get("inputRequests"))
    assert seen["status"] == "working"
    await task.update(BLUE)
    assert did() == ["work began"]
    release()
    assert await task.text() == "work red"
    assert did() == ["work began", "work ended"]


async def test_an_answer_that_does_not_fit_is_asked_for_again_although_the_step_has_ended(
    owner: Follower,
) -> None:
    task = await owner.begin("asks_while_it_works")
    await happened("running")
    await task.asked("colour")
    await task.update(UNFIT)
    release()
    await task.asked("colour#2")
    await task.update({"colour#2": RED["colour"]})
    assert await task.text() == "work red"
    assert did() == ["work began", "work ended"]


async def test_a_question_that_its_tool_cancels_stays_asked(owner: Follower) -> None:
    task = await owner.begin("changes_its_mind")
    await happened("running")
    await task.asked("colour")
    release()
    await task.asked("colour", "size")
    await task.update({**RED, "size": accept(size=3)})
    assert await task.text() == "size 3"
    assert did() == ["work began", "work ended"]
