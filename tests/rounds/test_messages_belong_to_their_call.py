"""Messages and input requests belong to the call whose code makes them, stateless and in a session
(SEP-2260)."""

import asyncio
from typing import Any

import pytest

from mcphost.sdk import CallEndedError, current
from tests.cast import Cast
from tests.legacy import Session, begin
from tests.legacy import calling as calling_in_session
from tests.rounds.client_steps import EVERYTHING, RED, Asker, asked, calling, done, state_of
from tests.rounds.conftest import module

pytestmark = pytest.mark.django_db(transaction=True)

PLACES = ("task", "task of a task", "thread", "pool", "loop of a thread", "sync_to_async")
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "form": ("elicitation/create", RED["colour"]),
    "page": ("elicitation/create", {"action": "accept"}),
    "text": (
        "sampling/createMessage",
        {"role": "assistant", "model": "m1", "content": {"type": "text", "text": "short"}},
    ),
    "folders": ("roots/list", {"roots": []}),
}
PAIRS = [(what, place) for what in ASKED for place in PLACES]
SAID = {"log": "notifications/message", "progress": "notifications/progress"}


def _calling(cast: Cast, tool: str, **arguments: Any) -> Asker:
    return calling(cast.owner.mcp_token, tool, **arguments)


async def test_concurrent_calls_send_their_own_input_requests_from_any_place_in_the_code(
    asking: Cast,
) -> None:
    askers = [_calling(asking, "says_from", place=place, what=what) for what, place in PAIRS]
    firsts = await asyncio.gather(*(asker.leg() for asker in askers))
    assert [[(key, one["method"]) for key, one in asked(first).items()] for first in firsts] == [
        [(what, ASKED[what][0])] for what, _ in PAIRS
    ]
    lasts = await asyncio.gather(
        *(
            asker.leg(state_of(first), {what: ASKED[what][1]})
            for asker, first, (what, _) in zip(askers, firsts, PAIRS, strict=True)
        )
    )
    assert [done(last) for last in lasts] == [f"{what} from {place}" for what, place in PAIRS]


async def _answered_on_its_stream(session: Session, id: int, what: str, place: str) -> None:
    async with session.begun(
        calling_in_session("says_from", {"place": place, "what": what}, id)
    ) as (stream):
        question = await stream.message()
        assert question["method"] == ASKED[what][0]
        body = {"jsonrpc": "2.0", "id": question["id"], "result": ASKED[what][1]}
        assert (await session.send(body)).status == 202
        last = await stream.message()
        assert last["id"] == id
        assert last["result"]["content"][0]["text"] == f"{what} from {place}"


async def _told_on_its_stream(session: Session, id: int, what: str, place: str) -> None:
    reply = await session.call("says_from", {"place": place, "what": what}, id, progressToken=id)
    message, last = reply.messages
    assert message["method"] == SAID[what]
    assert message["params"].get("progressToken", id) == id
    assert last["result"]["content"][0]["text"] == f"{what} from {place}"


async def test_concurrent_requests_of_a_session_use_their_own_streams(
    asking: Cast,
) -> None:
    session = await begin("acme", asking.owner.mcp_token, "2025-11-25", **EVERYTHING)
    said = [(what, place) for what in SAID for place in PLACES]
    async with asyncio.timeout(30):
        await asyncio.gather(
            *(_answered_on_its_stream(session, id, *pair) for id, pair in enumerate(PAIRS, 1)),
            *(_told_on_its_stream(session, id, *pair) for id, pair in enumerate(said, 100)),
        )


async def test_input_cannot_be_requested_outside_a_call_or_after_it(asking: Cast) -> None:
    with pytest.raises(RuntimeError, match="no tool"):
        current()
    assert "no tool" in done(await _calling(asking, "asks_from_a_strange_thread").leg())
    await _calling(asking, "keeps_its_context").leg()
    [kept] = module("asking").kept
    with pytest.raises(CallEndedError):
        await kept.elicit("colour", "Which colour?", module("asking").Colour)
