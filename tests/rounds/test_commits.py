"""How many submissions to the writer a call waits for: each is a commit, shared with other calls."""

from collections.abc import Sequence
from typing import Any

import pytest

from mcphost.audit.records import Record
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import Writer
from tests.cast import Cast
from tests.rounds.legs import RED, calling, done, state_of

pytestmark = pytest.mark.django_db(transaction=True)

Submitted = list[tuple[str, ...]]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> Submitted:
    """The actions of the records of each submission; "claim" stands for a condition."""
    seen: Submitted = []
    submit = Writer.submit

    def noting(
        writer: Writer, records: Sequence[Record], condition: Condition | None = None
    ) -> Any:
        claim = () if condition is None else ("claim",)
        seen.append((*claim, *(record.action for record in records)))
        return submit(writer, records, condition)

    monkeypatch.setattr(Writer, "submit", noting)
    return seen


async def test_a_tool_that_acts_and_asks_takes_four(asking: Cast, submitted: Submitted) -> None:
    asker = calling(asking.owner.mcp_token, "paint", what="it")
    first = await asker.leg()
    assert submitted == [("round.started",), ("round.finished", "question.asked")]
    submitted.clear()
    assert done(await asker.leg(state_of(first), RED)) == "it is red"
    assert submitted == [
        ("claim", "answer.received", "round.started"),
        ("claim", "round.finished"),
    ]


async def test_a_tool_that_reads_and_asks_takes_three(asking: Cast, submitted: Submitted) -> None:
    asker = calling(asking.owner.mcp_token, "survey")
    first = await asker.leg()
    assert submitted == [("round.finished", "question.asked")]
    submitted.clear()
    (await asker.leg(state_of(first), RED)).check()
    assert submitted == [("answer.received",), ("round.finished",)]
