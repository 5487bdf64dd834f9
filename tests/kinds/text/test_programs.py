"""What a prompt or template that is data may grow to."""

from typing import Any

import pytest

from mcphost.kinds.sorts import Sort
from mcphost.kinds.text.kind import text_kind
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from tests.kinds.rounds import a_call, ports

TEXT = {"type": "text", "text": "{a}" * 1000}
HELD = {"type": "resource", "resource": {"uri": "a:b", "text": "{a}" * 1000}}
BLOB = {"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}


@pytest.mark.parametrize(
    ("sort", "config"),
    [
        (Sort.PROMPT, {"arguments": [{"name": "a"}], "messages": [{"content": TEXT}]}),
        (
            Sort.PROMPT,
            {"arguments": [{"name": "a"}], "messages": [{"content": HELD}, {"content": BLOB}]},
        ),
        (Sort.TEMPLATE, {"uri": "docs:{a}", "text": "{a}" * 1000}),
    ],
)
async def test_what_would_be_too_long_is_refused_before_it_is_made(
    sort: Sort, config: dict[str, Any]
) -> None:
    program = text_kind.compile(config, sort).program
    outside = ports(result_bytes=10_000)
    fits = await program.advance(a_call({"a": "x" * 10}), EMPTY, outside)
    assert isinstance(fits, Complete)
    over = await program.advance(a_call({"a": "x" * 11}), EMPTY, outside)
    assert isinstance(over, Failed)
    assert over.error.kind is FailureKind.INVALID_ARGUMENTS
    assert "10000 bytes" in over.error.message
