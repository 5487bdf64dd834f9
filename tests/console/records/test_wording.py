"""Tests of the display of questions and answers."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.audit.entries import EntryView, PayloadView, view
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED, ROUND_FINISHED
from mcphost.console.records.wording import DisplayedPayload, display
from tests.audit.recorded_calls import Story, row


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


@pytest.mark.parametrize("data", ["no base64!", "Q", 7, "QUJD"])
def test_data_that_is_not_an_image_is_never_shown_as_one(data: Any) -> None:
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
def test_any_request_or_response_of_a_client_can_be_displayed(params: Any, result: Any) -> None:
    for found in (question(params), answer(result), said(QUESTION_ASKED, params)):
        assert isinstance(found.is_long, bool)
        assert all(isinstance(text, str) for pair in found.facts for text in pair)
