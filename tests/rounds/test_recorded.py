"""What is recorded of calls that ask. tests/equivalence has the records of tools that ask forms."""

from typing import Any

import pytest

from tests.cast import Cast
from tests.rounds.legs import RED, Asker, calling, failed, state_of
from tests.served import entries

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "short"}}


async def _told(target: str, method: str = "tools/call") -> list[tuple[str, str]]:
    """What is recorded of calls: the action and the outcome, in order."""
    return [(entry.action, entry.outcome) for entry in await entries(target, method)]


async def _unasked(tool: str) -> list[Any]:
    """Of each answer that is recorded, whether it was not asked for."""
    received = [one for one in await entries(tool) if one.action == "answer.received"]
    return [(one.facts or {})["unasked"] for one in received]


async def test_each_kind_of_answer_is_recorded_as_what_it_is(asking: Cast) -> None:
    token = asking.owner.mcp_token
    for tool, answers in (
        ("folders", {"roots": {"roots": []}}),
        ("summarise", {"summary": SHORT}),
    ):
        asker = calling(token, tool)
        await asker.leg(state_of(await asker.leg()), answers)
        assert ("answer.received", "received") in await _told(tool)
    page = Asker(token, {"uri": "asking://page"}, method="resources/read")
    await page.leg(state_of(await page.leg()), RED)
    assert await _told("asking://page", "resources/read") == [
        ("round.finished", "input_required"),
        ("question.asked", ""),
        ("answer.received", "accept"),
        ("round.finished", "complete"),
    ]


async def test_answers_that_nobody_asked_for_are_recorded_only_where_they_are_taken(
    asking: Cast,
) -> None:
    token = asking.owner.mcp_token
    await calling(token, "takes_anything").leg(answers=RED)
    assert await _unasked("takes_anything") == [True]
    await calling(token, "survey").leg(answers=RED)
    assert await _unasked("survey") == []


async def test_a_failure_of_the_author_is_recorded_with_its_kind(asking: Cast) -> None:
    assert failed(await calling(asking.owner.mcp_token, "asks_in_a_step").leg())
    [(action, outcome)] = await _told("asks_in_a_step")
    assert action == "round.finished"
    assert outcome not in ("", "complete", "input_required")
