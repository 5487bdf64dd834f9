"""The common behaviour of all kinds of tools for all clients, in every delivery."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.serving.contracts.clients import Client, Result, client
from tests.serving.contracts.conftest import EACH_ONCE
from tests.serving.contracts.offers import Offer

pytestmark = pytest.mark.django_db(transaction=True)

DECLINE: Mapping[str, Any] = {"action": "decline"}
CANCEL: Mapping[str, Any] = {"action": "cancel"}


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


async def completes(caller: Client) -> None:
    await caller.begin("nothing")
    assert got(await caller.result()) == []


async def asks_twice(caller: Client) -> None:
    await caller.begin("twice")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    await caller.asked("b")
    await caller.answer(b=named("y"))
    assert got(await caller.result()) == ["x", "y"]


async def asks_side_by_side(caller: Client) -> None:
    await caller.begin("beside")
    await caller.asked("a", "b")
    await caller.answer(b=named("y"))
    await caller.asked("a")
    await caller.answer(a=named("x"))
    assert got(await caller.result()) == ["x", "y"]


async def learns_that_a_question_was_declined(caller: Client) -> None:
    await caller.begin("once")
    await caller.asked("a")
    await caller.answer(a=DECLINE)
    assert got(await caller.result()) == ["decline"]


async def learns_that_a_question_was_cancelled(caller: Client) -> None:
    await caller.begin("once")
    await caller.asked("a")
    await caller.answer(a=CANCEL)
    assert got(await caller.result()) == ["cancel"]


async def asks_again_after_an_invalid_answer(caller: Client) -> None:
    await caller.begin("once")
    await caller.asked("a")
    assert caller.shown == ["a?"]
    await caller.answer(a=named(5))
    await caller.asked("a")
    (message,) = caller.shown
    assert message == "a?\n\nThe last response was not accepted: name: not a text"
    await caller.answer(a=named("x"))
    assert got(await caller.result()) == ["x"]


async def tells_an_error(caller: Client) -> None:
    await caller.begin("fail")
    assert "it went wrong" in refused(await caller.result())


async def asks_the_user_to_open_a_page(caller: Client) -> None:
    await caller.begin("page")
    await caller.asked("a")
    await caller.answer(a={"action": "accept"})
    assert got(await caller.result()) == ["agreed"]


async def ends_when_the_user_declines_a_page(caller: Client) -> None:
    await caller.begin("page")
    await caller.asked("a")
    await caller.answer(a=DECLINE)
    assert refused(await caller.result())


async def ends_when_the_user_cancels_a_page(caller: Client) -> None:
    await caller.begin("page")
    await caller.asked("a")
    await caller.answer(a=CANCEL)
    assert refused(await caller.result())


BEHAVIOURS = (
    completes,
    asks_twice,
    asks_side_by_side,
    learns_that_a_question_was_declined,
    learns_that_a_question_was_cancelled,
    asks_again_after_an_invalid_answer,
    tells_an_error,
)
OF_PAGES = (
    asks_the_user_to_open_a_page,
    ends_when_the_user_declines_a_page,
    ends_when_the_user_cancels_a_page,
)
"""The service of an HTTP tool asks forms only."""


async def test_every_kind_of_tool_requests_input_and_completes_for_every_client(offer: Offer):
    for behave in (*BEHAVIOURS, *(OF_PAGES if offer.kind != "http" else ())):
        async with client(offer.cast, offer.delivery) as caller:
            await behave(caller)


@pytest.mark.parametrize("pair", EACH_ONCE, indirect=True, ids="-".join)
async def test_a_call_that_exceeds_its_time_limit_ends(offer: Offer, caller: Client):
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


@pytest.mark.parametrize("pair", EACH_ONCE, indirect=True, ids="-".join)
async def test_a_new_version_of_the_tool_repeats_no_input_request(offer: Offer, caller: Client):
    await caller.begin("twice")
    await caller.asked("a")
    await caller.answer(a=named("x"))
    await caller.asked("b")
    await offer.publish(title="Another title")
    await caller.answer(b=named("y"))
    assert got(await caller.result()) == ["x", "y"]
