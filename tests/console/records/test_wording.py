"""Tests of the display of questions and answers."""

from base64 import b64encode
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.audit.entries import EntryView, PayloadView, view
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED, ROUND_FINISHED
from mcphost.console.records.wording import LONG, DisplayedPayload, display
from mcphost.console.templatetags.questions import (
    asks_for,
    delivery,
    evidence,
    icon_of,
    tally,
    why_refused,
)
from mcphost.sealing.tokens import Reason
from tests.audit.asking import Story, row

PNG = b64encode(b"\x89PNG\r\n\x1a\n of a kind").decode()
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


def test_a_page_to_open_is_told_and_is_no_link() -> None:
    found = question({"mode": "url", "message": "Sign in", "url": "https://a.example/?x=1"})
    assert (found.text, found.facts) == ("Sign in", (("Opens", "https://a.example/?x=1"),))


def test_what_a_model_is_asked_is_a_conversation() -> None:
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    found = question(
        {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Look:"}},
                {"role": "user", "content": [picture, {"type": "tool_use", "name": "t"}]},
                {"role": "odd one", "content": "bare"},
            ],
            "systemPrompt": "Be brief.",
            "maxTokens": 100,
        }
    )
    assert found.facts == (("System prompt", "Be brief."), ("Max tokens", "100"))
    assert [each.role for each in found.pieces] == ["user", "user", "user", ""]
    assert found.pieces[0].text == "Look:"
    assert found.pieces[1].blob is not None
    assert found.pieces[1].blob.is_image
    assert '"tool_use"' in found.pieces[2].text


def test_an_answer_to_a_form_is_its_fields() -> None:
    found = answer(
        {"action": "accept", "content": {"a": "x", "b": False, "c": [1, "d"], "e": None}}
    )
    assert found.facts == (("a", "x"), ("b", "no"), ("c", "1, d"), ("e", "none"))
    assert answer({"action": "decline"}).facts == ()


def test_a_large_answer_of_a_model_is_folded() -> None:
    result = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "t" * LONG}}
    found = answer({**result, "stopReason": "endTurn"})
    assert found.facts == (("Model", "m"), ("Stop reason", "endTurn"))
    assert found.is_long
    assert not answer({**result, "content": {"type": "text", "text": "short"}}).is_long


def test_roots_are_told_by_name() -> None:
    found = answer({"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}, 7]})
    assert found.facts == (("A", "file:///a"), ("Folder", "file:///b"), ("Folder", "7"))


def test_a_round_and_what_cannot_be_read_stay_as_they_are() -> None:
    assert said(ROUND_FINISHED, {"arguments": {}}) == DisplayedPayload(raw={"arguments": {}})
    broken = display(entry(QUESTION_ASKED), PayloadView(uuid4(), problem="its key is gone"))
    assert broken == DisplayedPayload(problem="its key is gone")


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


def refused(reason: str) -> EntryView:
    return view(row(Story().refuse(reason)))


def test_kinds_of_questions_and_evidence_have_words_and_new_ones_their_own() -> None:
    url = entry(QUESTION_ASKED, mode="url")
    assert (asks_for(url), icon_of(url)) == ("URL to open", "open_in_new")
    assert asks_for(entry(QUESTION_ASKED, method="roots/list", mode="")) == "folders (roots)"
    assert asks_for(entry(QUESTION_ASKED, method="new/thing")) == "new/thing"
    assert "signed-in user" in evidence(entry(ANSWER_RECEIVED, evidence="signed-in"))
    assert evidence(entry(ANSWER_RECEIVED, evidence="new")) == "new"
    assert "session" in delivery("legacy")
    assert delivery("new") == "new"
    assert all(why_refused(refused(reason)) != reason for reason in Reason)
    assert why_refused(refused("expired")) == "expired"
    assert tally({"accept": 2, "new": 1}) == "2 accepted, 1 new"
