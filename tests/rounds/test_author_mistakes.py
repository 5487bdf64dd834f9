"""Mistakes of tool authors: authors find the reason in the log, callers get an error without
details."""

import asyncio
from collections.abc import Mapping

import pytest

from mcphost.runtime import deadlines
from tests.cast import Cast
from tests.mcp import Reply
from tests.rounds.client_steps import Asker, accept, asked, calling, done, failed, state_of
from tests.rounds.conftest import module

pytestmark = pytest.mark.django_db(transaction=True)

YES = accept(yes=True)


def _calling(cast: Cast, tool: str, **arguments: object) -> Asker:
    return calling(cast.owner.mcp_token, tool, **arguments)


def _told_to_author(log: pytest.LogCaptureFixture, *words: str) -> None:
    """The log says what happened in these words."""
    text = "\n".join(record.getMessage() for record in log.records)
    for word in words:
        assert word in text, text


def _tells_nothing_of_the_insides(reply: Reply) -> None:
    assert b"Traceback" not in reply.raw
    assert b"canary" not in reply.raw
    assert b".py" not in reply.raw


MISTAKES: Mapping[str, tuple[str, ...]] = {
    "same_key_at_once": ("'again'", "twice"),
    "asks_in_a_step": ("'inner'", "step"),
    "unstorable": ("'makes-a-socket'",),
    "asks_for_secrets": ("password",),
    "bad_key": ("not a key!",),
    "fails_beside_a_question": ("canary-of-the-failure",),
}
"""Tools that fail in their first round, and words that the log has for their authors."""
LATER: Mapping[str, tuple[str, str, str]] = {
    "same_key_in_turn": ("again", "'again'", "twice"),
    "fickle": ("fickle", "'fickle'", "changed"),
}
"""Tools that fail once their question was answered: its key, and words of the log."""


@pytest.mark.requirement("elicitation.no-secrets")
async def test_a_mistake_of_a_tool_is_logged_for_its_author_and_hidden_from_callers(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    for tool, words in MISTAKES.items():
        caplog.clear()
        reply = await _calling(asking, tool).leg()
        assert failed(reply), tool
        assert b"inputRequests" not in reply.raw
        _tells_nothing_of_the_insides(reply)
        _told_to_author(caplog, *words)
    for tool, (key, *told) in LATER.items():
        caplog.clear()
        asker = _calling(asking, tool)
        first = await asker.leg()
        assert list(asked(first)) == [key]
        reply = await asker.leg(state_of(first), {key: YES})
        assert failed(reply), tool
        _tells_nothing_of_the_insides(reply)
        _told_to_author(caplog, *told)


@pytest.mark.parametrize("answers", [True, False])
async def test_a_tool_that_asks_without_end_is_ended_before_its_client_gives_up(
    asking: Cast, caplog: pytest.LogCaptureFixture, answers: bool
) -> None:
    asker = _calling(asking, "asks_for_ever")
    reply, legs = await asker.leg(), 1
    while reply.result["resultType"] == "input_required":
        legs += 1
        assert legs <= 11
        reply = await asker.leg(
            state_of(reply), dict.fromkeys(asked(reply), YES) if answers else {}
        )
    assert legs == (8 if answers else 10), (
        "two replies are kept for repetitions, and one for a move"
    )
    assert "10 replies" in failed(reply)
    assert "can become a task" in failed(reply)
    assert ("Answered were: " in failed(reply)) is answers
    _told_to_author(caplog, "10 replies")


# It ignores its own closing too, of which Python tells whoever listens.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_tool_that_swallows_every_exception_is_ended_and_delays_no_other_call(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "WARNING_SECONDS", 0.01)
    ending = asyncio.create_task(_calling(asking, "swallows_for_ever").leg())
    async with asyncio.timeout(10):
        await module("careless").swallowed.wait()
    assert done(await _calling(asking, "leaves_tasks", ask=False).leg()) == "left False"
    assert "0.2" in failed(await ending)


async def test_unfinished_tasks_of_a_tool_end_before_the_response_is_sent(
    asking: Cast,
) -> None:
    seen = module("careless").seen
    assert done(await _calling(asking, "leaves_tasks", ask=False).leg()) == "left False"
    assert seen == ["ended"]
    asker = _calling(asking, "leaves_tasks", ask=True)
    first = await asker.leg()
    assert seen == ["ended"] * 2
    assert done(await asker.leg(state_of(first), {"question": YES})) == "left False"
    assert seen == ["ended"] * 3
    asker = _calling(asking, "asks_in_a_task_it_leaves")
    first = await asker.leg()
    assert list(asked(first)) == ["question"]
    assert done(await asker.leg(state_of(first), {"question": YES})).startswith("done ")
