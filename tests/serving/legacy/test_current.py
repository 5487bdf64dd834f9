"""Messages and input requests go out on the stream of their own request, from any code of the call.

SEP-2260 requires that an SDK's helpers find the originating request by themselves: also in a
session, and with concurrent calls.
"""

import asyncio
from typing import Any

import pytest

from tests.cast import Cast
from tests.serving.legacy.callers import Caller, Shown

pytestmark = pytest.mark.django_db(transaction=True)

PLACES = ["task", "task of a task", "thread", "pool", "loop of a thread", "sync_to_async"]
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "form": ("elicitation/create", {"action": "accept", "content": {"colour": "red"}}),
    "page": ("elicitation/create", {"action": "accept"}),
    "text": (
        "sampling/createMessage",
        {"role": "assistant", "model": "m1", "content": {"type": "text", "text": "short"}},
    ),
    "folders": ("roots/list", {"roots": []}),
}
SAID = {"log": "notifications/message", "progress": "notifications/progress"}


def _text(shown: Shown) -> str:
    result = shown.messages[-1]["result"]
    assert not result.get("isError"), result
    text: str = result["content"][0]["text"]
    return text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", ASKED)
async def test_each_convenience_asks_on_the_stream_of_its_own_request(
    asking: Cast, place: str, what: str
) -> None:
    caller = await Caller.at(asking)
    method, answer = ASKED[what]
    shown = await caller.streamed("says_from", place=place, what=what)
    [request] = await shown.asked()
    assert request["method"] == method
    await caller.answer(request, answer)
    await shown.whole()
    assert _text(shown) == f"{what} from {place}"
    assert len(shown.requests) == 1


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", SAID)
async def test_each_convenience_notifies_on_the_stream_of_its_own_request(
    asking: Cast, place: str, what: str
) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("says_from", "p1", place=place, what=what)
    await shown.whole()
    [said] = shown.of(SAID[what])
    assert said["params"].get("progressToken", "p1") == "p1"
    assert _text(shown) == f"{what} from {place}"


async def test_requests_of_one_session_at_once_ask_each_on_its_own_stream(asking: Cast) -> None:
    caller = await Caller.at(asking)
    pairs = [(what, place) for what in ASKED for place in PLACES]
    streams = await asyncio.gather(
        *(caller.streamed("says_from", place=place, what=what) for what, place in pairs)
    )
    asked = [(await shown.asked())[0] for shown in streams]
    assert [one["method"] for one in asked] == [ASKED[what][0] for what, _ in pairs]
    for (what, _), request in zip(pairs, asked, strict=True):
        await caller.answer(request, ASKED[what][1])
    for (what, place), shown in zip(pairs, streams, strict=True):
        await shown.whole()
        assert _text(shown) == f"{what} from {place}"
        assert len(shown.requests) == 1
