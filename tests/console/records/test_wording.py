"""Tests of the display of questions and answers."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.audit.entries import EntryView, PayloadView, view
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED, ROUND_FINISHED
from mcphost.console.records.wording import DisplayedPayload, display
from tests.audit.asking import Story, row

FORM = {
    "message": "Resolving #4522 needs a resolution",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "resolution": {"type": "string", "enum": ["Fixed", "Duplicate"], "title": "Resolution"},
            "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "tell": {"type": "boolean", "default": True},
            "count": {"type": "integer"},
            "odd": True,
        },
        "required": ["resolution", "count"],
    },
}


def entry(action: str, **facts: Any) -> EntryView:
    story = Story()
    made = {
        QUESTION_ASKED: lambda: story.question("q", **facts),
        ANSWER_RECEIVED: lambda: story.answer("q", **facts),
        ROUND_FINISHED: story.end,
    }
    return view(row(made[action]()))


def said(action: str, content: Any) -> DisplayedPayload:
    return display(entry(action), PayloadView(uuid4(), content=content))


def question(params: Any) -> DisplayedPayload:
    return said(QUESTION_ASKED, {"question": params})


def answer(result: Any) -> DisplayedPayload:
    return said(ANSWER_RECEIVED, {"answer": result})


def test_a_form_is_its_message_and_what_each_field_takes() -> None:
    found = question(FORM)
    assert (found.text, found.raw) == (FORM["message"], FORM)
    assert found.facts == (
        ("Resolution", "one of Fixed, Duplicate"),
        ("size", "one of Small, l, optional"),
        ("tags", "any of a, b, optional"),
        ("tell", "yes or no, suggested: yes, optional"),
        ("count", "a whole number"),
        ("odd", "a value, optional"),
    )


def test_an_answer_to_a_form_is_its_fields() -> None:
    found = answer(
        {"action": "accept", "content": {"a": "x", "b": False, "c": [1, "d"], "e": None}}
    )
    assert found.facts == (("a", "x"), ("b", "no"), ("c", "1, d"), ("e", "none"))
    assert answer({"action": "decline"}).facts == ()


@pytest.mark.parametrize("data", ["no base64!", "Q", 7, "QUJD"])
def test_what_is_no_image_is_never_shown_as_one(data: Any) -> None:
    block = {"type": "image", "data": data, "mimeType": "image/png"}
    (piece,) = answer({"role": "assistant", "content": block}).pieces
    assert piece.blob is None or not piece.blob.is_image


NAMES = [
    "content", "role", "roots", "messages", "url", "message", "requestedSchema", "properties",
    "required", "type", "enum", "oneOf", "items", "data", "mimeType", "question", "answer",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, JSON)
def test_whatever_a_client_sent_can_be_shown(params: Any, result: Any) -> None:
    for found in (question(params), answer(result), said(QUESTION_ASKED, params)):
        assert isinstance(found.is_long, bool)
        assert all(isinstance(text, str) for pair in found.facts for text in pair)
