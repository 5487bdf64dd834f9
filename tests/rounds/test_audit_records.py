"""Audit records of calls that request input. tests/equivalence has the records of tools that
request forms."""

from typing import Any

import pytest

from tests.cast import Cast
from tests.rounds.client_steps import RED, calling
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


async def test_unrequested_responses_are_recorded_only_where_they_are_accepted(
    asking: Cast,
) -> None:
    token = asking.owner.mcp_token
    await calling(token, "takes_anything").leg(answers=RED)
    assert await _unasked("takes_anything") == [True]
    await calling(token, "survey").leg(answers=RED)
    assert await _unasked("survey") == []
