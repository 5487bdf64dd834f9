"""Tests of the questions that authors can ask: each is valid on the wire, and reads what clients
return."""

from typing import Any

import pytest
from pydantic import Field

from mcphost.runtime.questions import QuestionRefusedError
from mcphost.sdk import (
    AnswerFailedError,
    Cancelled,
    Declined,
    Form,
    ToolError,
    UrlAnswer,
)
from mcphost.sdk.questions import form, roots, url
from tests.sdk.question_checks import invalid, on_the_wire

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Reason(Form):
    reason: str


# --- keys and messages ---


@pytest.mark.parametrize("key", ["", "a b", "x" * 65, "a\n", 5])
def test_an_invalid_key_is_refused(key: Any) -> None:
    with pytest.raises(QuestionRefusedError, match="is not a key"):
        roots(key)


@pytest.mark.parametrize(
    ("key", "message", "why"),
    [
        ("name", "", "the message must be a text"),
        ("name", "What is your password?", "asks for a secret"),
        ("password", "What is it?", "the key 'password' asks for a secret"),
        ("name", "Look at https://example.com", "holds a web address"),
        ("name", 5, "the message must be a text"),
    ],
)
def test_a_forbidden_form_is_refused_with_the_reason(key: str, message: Any, why: str) -> None:
    with pytest.raises(QuestionRefusedError, match=why):
        form(key, message, NAME)


def test_unpaired_surrogates_in_an_input_request_are_replaced() -> None:
    assert form("name", "Who is it? \ud83d", NAME).params["message"] == "Who is it? \ufffd"


def test_a_form_about_a_secret_without_typed_fields_is_allowed() -> None:
    class Confirm(Form):
        rotate: bool = Field(title="Rotate the API key")

    on_the_wire(form("api_key", "This makes the old API key worthless. Go on?", Confirm))


def test_equal_input_requests_have_equal_digests_and_different_ones_differ() -> None:
    assert form("a", "Who?", NAME).digest == form("b", "Who?", NAME).digest
    others = [form("a", "What?", NAME), form("a", "Who?", Reason), roots(), roots("a")]
    digests = [question.digest for question in (form("a", "Who?", NAME), *others)]
    assert len(set(digests)) == 4


# --- pages ---


@pytest.mark.requirement("elicitation.consent")
def test_a_url_request_contains_its_address_and_returns_the_users_consent() -> None:
    question = url("connect", "Please connect your account", "https://example.com/connect?l=1")
    assert on_the_wire(question) == {
        "mode": "url",
        "message": "Please connect your account",
        "url": "https://example.com/connect?l=1",
    }
    assert question.capability == "elicitation.url"
    assert question.read({"action": "accept", "content": {"a": "b"}}) == UrlAnswer("accept")
    assert question.read({"action": "accept"}).accepted
    assert not question.read({"action": "cancel"}).accepted
    assert "its action must be" in invalid(question, {"action": "done"})


@pytest.mark.parametrize(
    ("message", "address", "why"),
    [
        ("", "https://example.com", "the message must be a text"),
        ("Go", "http://example.com", "must begin with https://"),
        ("Go", "https://ada:secret@example.com", "user name or password"),
    ],
)
def test_a_forbidden_url_is_refused(message: Any, address: Any, why: str) -> None:
    with pytest.raises(QuestionRefusedError, match=f"'connect' cannot be asked: .*{why}"):
        url("connect", message, address)


# --- roots ---


def test_roots_are_requested_and_read() -> None:
    question = roots()
    assert on_the_wire(question) == {}
    assert (question.key, question.capability) == ("roots", "roots")
    (root,) = question.read({"roots": [{"uri": "file:///test/root", "name": "Test Root"}]})
    assert (str(root.uri), root.name) == ("file:///test/root", "Test Root")
    assert question.read({"roots": [], "more": 5}) == []


@pytest.mark.requirement("roots.file")
@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({}, "its roots is missing"),
        ({"roots": None}, "its roots is not valid"),
        ({"roots": [5]}, "roots.0.uri: must begin with file://"),
        ({"roots": [{"uri": "file:///a"}, {"uri": "/b"}]}, "roots.1.uri: must begin with file://"),
        ({"roots": [{"uri": "https://example.com"}]}, "roots.0.uri: must begin with file://"),
        ({"roots": [{"uri": "file:///a", "name": "\ud800"}]}, "is not JSON"),
    ],
)
def test_invalid_roots_are_refused(result: Any, why: str) -> None:
    assert why in invalid(roots(), result)


# --- errors ---


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Declined, "was declined"),
        (Cancelled, "was dismissed without an answer"),
        (AnswerFailedError, "could not be answered"),
    ],
)
def test_the_error_for_an_unanswered_input_request_names_its_key_for_the_caller(
    error: Any, text: str
) -> None:
    raised = error("resolution")
    assert isinstance(raised, ToolError)
    assert raised.key == "resolution"
    assert "the question 'resolution' " + text in str(raised)
    assert "the question " + text in str(error())
