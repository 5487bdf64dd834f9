"""What every kind of tool does for every client, whatever asks and however it is delivered."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.serving.contracts.clients import DELIVERIES, Client, Result
from tests.serving.contracts.offers import Offer

pytestmark = pytest.mark.django_db(transaction=True)

DECLINE: Mapping[str, Any] = {"action": "decline"}
CANCEL: Mapping[str, Any] = {"action": "cancel"}
ASKS_FOR_PAGES = [(kind, delivery) for kind in ("python", "script") for delivery in DELIVERIES]
"""The service of an HTTP tool asks forms only."""


def named(name: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


def got(result: Result) -> list[str]:
    """Return what the tool got, of a result that must be the plain end."""
    assert not result.get("isError"), result
    found: list[str] = result["structuredContent"]["got"]
    return found


def refused(result: Result) -> str:
    """Return the text of a result that must be an error of the tool."""
    assert result.get("isError") is True, result
    text: str = result["content"][0]["text"]
    return text


async def test_it_completes(caller: Client):
    await caller.begin("nothing")
    assert got(await caller.result()) == []


async def test_it_asks_once(caller: Client):
    await caller.begin("once")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    assert got(await caller.result()) == ["x"]


async def test_it_asks_twice(caller: Client):
    await caller.begin("twice")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    await caller.asked("b")
    await caller.answer(b=named("y"))
    assert got(await caller.result()) == ["x", "y"]


async def test_it_asks_side_by_side(caller: Client):
    await caller.begin("beside")
    await caller.asked("a", "b")
    await caller.answer(b=named("y"))
    await caller.asked("a")
    await caller.answer(a=named("x"))
    assert got(await caller.result()) == ["x", "y"]


@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
async def test_it_learns_that_a_question_was_not_answered(
    caller: Client, answer: Mapping[str, Any]
):
    await caller.begin("once")
    await caller.asked("a")
    await caller.answer(a=answer)
    assert got(await caller.result()) == [answer["action"]]


@pytest.mark.parametrize("pair", ASKS_FOR_PAGES, ids="-".join, indirect=True)
async def test_it_asks_the_user_to_open_a_page(caller: Client):
    await caller.begin("page")
    await caller.asked("a")
    await caller.answer(a={"action": "accept"})
    assert got(await caller.result()) == ["agreed"]


@pytest.mark.parametrize("pair", ASKS_FOR_PAGES, ids="-".join, indirect=True)
@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
async def test_a_page_that_the_user_does_not_open_ends_the_call(
    caller: Client, answer: Mapping[str, Any]
):
    await caller.begin("page")
    await caller.asked("a")
    await caller.answer(a=answer)
    assert refused(await caller.result())


async def test_an_invalid_answer_is_asked_for_again(caller: Client):
    await caller.begin("once")
    await caller.asked("a")
    await caller.answer(a=named(5))
    await caller.asked("a")
    await caller.answer(a=named("x"))
    assert got(await caller.result()) == ["x"]


async def test_an_error_is_told(caller: Client):
    await caller.begin("fail")
    assert "it went wrong" in refused(await caller.result())


async def test_a_call_that_takes_too_long_ends(offer: Offer, caller: Client):
    await offer.publish(time_limit_seconds=1)
    await caller.begin("hang")
    result = await caller.result()
    assert "did not finish within 1 seconds" in str(result), result
    await offer.is_abandoned()


async def test_a_call_can_be_cancelled(offer: Offer, caller: Client):
    await caller.begin("hang")
    await offer.runs()
    await caller.cancel()
    await offer.is_abandoned()


async def test_a_new_version_in_between_asks_nothing_again(offer: Offer, caller: Client):
    await caller.begin("twice")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    await caller.asked("b")
    await offer.publish(title="Another title")
    await caller.answer(b=named("y"))
    assert got(await caller.result()) == ["x", "y"]
