"""What bad authors get, and what their callers are told: something else for each."""

import asyncio

import pytest

from mcphost.audit.models import Entry
from mcphost.runtime import deadlines
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.legacy import begin
from tests.mcp import Reply
from tests.rounds.conftest import module
from tests.rounds.legs import Asker, accept, asked, calling, done, failed, state_of

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


async def test_a_key_asked_twice_in_turn_is_the_authors_error_once_it_shows(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    asker = _calling(asking, "same_key_in_turn")
    first = await asker.leg()
    assert asked(first)["again"]["params"]["message"] == "The first?"
    reply = await asker.leg(state_of(first), {"again": YES})
    assert failed(reply)
    _tells_nothing_of_the_insides(reply)
    _told_to_author(caplog, "'again'", "twice")


async def test_a_key_asked_twice_side_by_side_is_the_authors_error_at_once(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    assert failed(await _calling(asking, "same_key_at_once").leg())
    _told_to_author(caplog, "'again'", "twice")


async def test_a_question_inside_a_step_is_the_authors_error(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    assert failed(await _calling(asking, "asks_in_a_step").leg())
    _told_to_author(caplog, "'inner'", "step")


async def test_who_asks_for_ever_is_ended_after_eight_legs_with_words(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    asker = _calling(asking, "asks_for_ever")
    reply, legs = await asker.leg(), 1
    while reply.result["resultType"] == "input_required":
        legs += 1
        assert legs <= 8
        [key] = asked(reply)
        reply = await asker.leg(state_of(reply), {key: YES})
    assert legs == 8
    assert "8" in failed(reply)
    _told_to_author(caplog, "8")


async def test_a_client_that_never_answers_is_told_after_eight_legs(asking: Cast) -> None:
    asker = _calling(asking, "asks_for_ever")
    reply = await asker.leg()
    for _ in range(7):
        reply = await asker.leg(state_of(reply), {})
    assert "8" in failed(reply)


async def test_who_swallows_the_unwinding_asks_all_the_same(asking: Cast) -> None:
    asker = _calling(asking, "swallows")
    first = await asker.leg()
    assert list(asked(first)) == ["question"]
    assert len(module("careless").seen) == 1
    assert done(await asker.leg(state_of(first), {"question": YES})) == "as if nothing had happened"


# It ignores its own closing too, of which Python tells whoever listens.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_who_swallows_everything_for_ever_is_ended_and_holds_up_nobody(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "WARNING_SECONDS", 0.01)
    ending = asyncio.create_task(_calling(asking, "swallows_for_ever").leg())
    async with asyncio.timeout(10):
        await module("careless").swallowed.wait()
    assert done(await _calling(asking, "leaves_tasks", ask=False).leg()) == "left False"
    assert "0.2" in failed(await ending)


async def test_a_task_that_is_left_behind_has_ended_before_the_answer_leaves(asking: Cast) -> None:
    assert done(await _calling(asking, "leaves_tasks", ask=False).leg()) == "left False"
    assert module("careless").seen == ["ended"]


async def test_so_it_has_when_the_round_ends_with_a_question(asking: Cast) -> None:
    asker = _calling(asking, "leaves_tasks", ask=True)
    first = await asker.leg()
    assert module("careless").seen == ["ended"]
    assert done(await asker.leg(state_of(first), {"question": YES})) == "left False"
    assert module("careless").seen == ["ended", "ended"]


async def test_a_question_in_a_task_that_nobody_waits_for_is_asked(asking: Cast) -> None:
    asker = _calling(asking, "asks_in_a_task_it_leaves")
    first = await asker.leg()
    assert list(asked(first)) == ["question"]
    reply = await asker.leg(state_of(first), {"question": YES})
    assert done(reply).startswith("done ")


async def test_a_step_whose_result_cannot_be_kept_is_the_authors_error_by_its_name(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await _calling(asking, "unstorable").leg()
    assert failed(reply)
    _tells_nothing_of_the_insides(reply)
    _told_to_author(caplog, "'makes-a-socket'")


async def test_what_is_more_than_a_state_can_carry_is_the_authors_error(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    kept_in_a_row = await _calling(asking, "large_step", size=200_000).leg()
    assert list(asked(kept_in_a_row)) == ["question"]
    assert failed(await _calling(asking, "large_step", size=9_000_000).leg())
    _told_to_author(caplog, "state")


async def test_a_question_that_changes_between_rounds_is_the_authors_error(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    asker = _calling(asking, "fickle")
    first = await asker.leg()
    reply = await asker.leg(state_of(first), {"fickle": YES})
    assert failed(reply)
    _told_to_author(caplog, "'fickle'", "changed")


@pytest.mark.requirement("elicitation.no-secrets")
async def test_a_form_for_secrets_is_not_asked(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await _calling(asking, "asks_for_secrets").leg()
    assert failed(reply)
    assert b"inputRequests" not in reply.raw
    _told_to_author(caplog, "password")


async def test_a_key_that_is_none_is_the_authors_error(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    assert failed(await _calling(asking, "bad_key").leg())
    _told_to_author(caplog, "not a key!")


async def test_a_failure_beside_a_question_wins_over_it(
    asking: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await _calling(asking, "fails_beside_a_question").leg()
    assert failed(reply)
    _tells_nothing_of_the_insides(reply)
    _told_to_author(caplog, "canary-of-the-failure")


async def test_a_tool_that_cancels_its_own_task_has_crashed_and_is_answered(asking: Cast) -> None:
    text = failed(await _calling(asking, "cancels_itself").leg())
    session = await begin("acme", asking.owner.mcp_token, "2025-11-25")
    result = (await session.call("cancels_itself")).result
    assert (result["isError"], result["content"][0]["text"]) == (True, text)
    ended = await in_database(
        lambda: list(
            Entry.objects.filter(action="round.finished").values_list("outcome", flat=True)
        )
    )
    assert ended == ["crashed", "crashed"]
