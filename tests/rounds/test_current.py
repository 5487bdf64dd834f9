"""A question belongs to the call that it is asked in, from wherever it is asked, and to no other.

What others asked of SDKs for questions that are requests of the server's, in the form of this
revision: a question can only be the result of a call of the client's own.
"""

import asyncio
from typing import Any

import pytest

from mcphost.sdk import CallEnded, current
from tests.cast import Cast
from tests.mcp import Reply, send
from tests.rounds.conftest import module
from tests.rounds.legs import RED, Asker, accept, asked, calling, done, state_of

pytestmark = pytest.mark.django_db(transaction=True)

PLACES = ["helper", "task", "group", "thread", "pool"]


def _calling(cast: Cast, tool: str, **arguments: Any) -> Asker:
    return calling(cast.owner.mcp_token, tool, **arguments)


@pytest.mark.parametrize("place", PLACES)
async def test_a_form_asked_anywhere_in_a_call_is_the_result_of_that_call(
    asking: Cast, place: str
) -> None:
    asker = _calling(asking, "asks_from", place=place)
    first = await asker.leg()
    assert asked(first)[place]["method"] == "elicitation/create"
    assert done(await asker.leg(state_of(first), {place: RED["colour"]})) == "red"


async def test_so_is_what_a_model_is_asked(asking: Cast) -> None:
    asker = _calling(asking, "samples_from_a_task")
    first = await asker.leg()
    assert asked(first)["summary"]["method"] == "sampling/createMessage"
    said = {"role": "assistant", "model": "m1", "content": {"type": "text", "text": "short"}}
    assert done(await asker.leg(state_of(first), {"summary": said})) == "m1"


async def test_and_so_are_roots(asking: Cast) -> None:
    asker = _calling(asking, "roots_from_a_task")
    first = await asker.leg()
    assert asked(first)["roots"]["method"] == "roots/list"
    assert done(await asker.leg(state_of(first), {"roots": {"roots": []}})) == "0"


ANSWERS: dict[str, dict[str, Any]] = {
    "form": {"action": "accept", "content": {"colour": "red"}},
    "page": {"action": "accept"},
    "text": {"role": "assistant", "model": "m1", "content": {"type": "text", "text": "short"}},
    "folders": {"roots": []},
}
STARTED = ["task", "task of a task", "thread", "pool", "loop of a thread", "sync_to_async"]


@pytest.mark.parametrize("place", STARTED)
@pytest.mark.parametrize("what", ANSWERS)
async def test_each_convenience_asks_in_its_own_call_from_whatever_the_call_starts(
    asking: Cast, place: str, what: str
) -> None:
    asker = _calling(asking, "says_from", place=place, what=what)
    first = await asker.leg()
    assert list(asked(first)) == [what]
    last = await asker.leg(state_of(first), {what: ANSWERS[what]})
    assert done(last) == f"{what} from {place}"


def _heard(reply: Reply) -> list[Any]:
    notes = [message["params"] for message in reply.messages if "method" in message]
    return [note.get("data", note.get("progress")) for note in notes]


async def test_logs_and_progress_come_on_the_stream_of_their_own_leg_and_only_what_is_new(
    asking: Cast,
) -> None:
    asker = _calling(asking, "logs_and_asks")
    message = asker.message()
    message["params"]["_meta"] |= {
        "progressToken": "p",
        "io.modelcontextprotocol/logLevel": "info",
    }
    first = await _sent(asking, message)
    assert _heard(first) == ["before", 1, "in a thread"]
    retry = asker.message(requestState=state_of(first), inputResponses=RED)
    retry["params"]["_meta"] = message["params"]["_meta"]
    second = await _sent(asking, retry)
    assert done(second) == "done"
    assert _heard(second) == [2, "after"]


async def _sent(cast: Cast, message: dict[str, Any]) -> Reply:
    return await send("acme", message, cast.owner.mcp_token)


async def test_outside_of_a_call_there_is_nobody_to_ask_and_that_is_said_at_once(
    asking: Cast,
) -> None:
    with pytest.raises(RuntimeError, match="no tool"):
        current()
    assert "no tool" in done(await _calling(asking, "asks_from_a_strange_thread").leg())


async def test_a_context_that_is_kept_asks_nothing_once_its_call_is_over(asking: Cast) -> None:
    await _calling(asking, "keeps_its_context").leg()
    [kept] = module("asking").kept
    with pytest.raises(CallEnded):
        await kept.elicit("colour", "Which colour?", module("asking").Colour)


async def test_calls_at_once_are_asked_each_its_own_question(asking: Cast) -> None:
    askers = [_calling(asking, "asks_from", place=PLACES[n % 5]) for n in range(20)]
    firsts = await asyncio.gather(*(asker.leg() for asker in askers))
    assert [list(asked(first)) for first in firsts] == [[PLACES[n % 5]] for n in range(20)]
    colours = [("red", "green", "blue")[n % 3] for n in range(20)]
    lasts = await asyncio.gather(
        *(
            asker.leg(state_of(first), {PLACES[n % 5]: accept(colour=colours[n])})
            for n, (asker, first) in enumerate(zip(askers, firsts, strict=True))
        )
    )
    assert [done(last) for last in lasts] == colours


async def test_what_was_answered_is_asked_once_and_not_again(asking: Cast) -> None:
    asker = _calling(asking, "in_turn", count=3)
    reply, seen = await asker.leg(), []
    while reply.result["resultType"] == "input_required":
        [key] = asked(reply)
        seen.append(key)
        reply = await asker.leg(state_of(reply), {key: accept(size=1)})
    assert seen == ["size0", "size1", "size2"]
