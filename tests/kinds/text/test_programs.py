"""Limits on the size of filled prompts and templates."""

from typing import Any

import pytest

from mcphost.kinds.kind import KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.text.kind import MAX_PLACEHOLDERS, text_kind
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from tests.kinds.rounds import a_call, ports

TEXT = {"type": "text", "text": "{a}" * 1000}
HELD = {"type": "resource", "resource": {"uri": "a:b", "text": "{a}" * 1000}}
BLOB = {"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}


@pytest.mark.parametrize(
    ("sort", "config"),
    [
        (PrimitiveType.PROMPT, {"arguments": [{"name": "a"}], "messages": [{"content": TEXT}]}),
        (
            PrimitiveType.PROMPT,
            {"arguments": [{"name": "a"}], "messages": [{"content": HELD}, {"content": BLOB}]},
        ),
        (PrimitiveType.TEMPLATE, {"uri": "docs:{a}", "text": "{a}" * 1000}),
    ],
)
async def test_a_text_that_would_be_too_long_is_refused_before_it_is_built(sort, config):
    program = text_kind.compile(config, sort).program
    outside = ports(result_bytes=10_010)
    fits = await program.advance(a_call({"a": "x" * 10}), EMPTY, outside)
    assert isinstance(fits, Complete)
    over = await program.advance(a_call({"a": "x" * 11}), EMPTY, outside)
    assert isinstance(over, Failed)
    assert over.error.kind is FailureKind.INVALID_ARGUMENTS
    assert "10010 bytes" in over.error.message


def _prompt(uses: int) -> dict[str, Any]:
    texts = ["{a}" * (uses // 2), "{{a}}" * (uses - uses // 2)]
    messages = [{"content": {"type": "text", "text": text}} for text in texts]
    return {"arguments": [{"name": "a"}], "messages": messages}


def test_the_number_of_placeholders_in_a_text_is_limited() -> None:
    """Empty values make no text too long, but take the same time."""
    text_kind.compile(_prompt(MAX_PLACEHOLDERS), PrimitiveType.PROMPT)
    with pytest.raises(KindError) as refused:
        text_kind.compile(_prompt(MAX_PLACEHOLDERS + 1), PrimitiveType.PROMPT)
    assert refused.value.problems.keys() == {"messages"}
    config = {"uri": "docs:{a}", "text": "{a}" * (MAX_PLACEHOLDERS + 1)}
    with pytest.raises(KindError) as refused:
        text_kind.compile(config, PrimitiveType.TEMPLATE)
    assert refused.value.problems.keys() == {"text"}
