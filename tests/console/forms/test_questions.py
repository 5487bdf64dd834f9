"""Tests of the forms for elicitation requests."""

from typing import Any

import pytest

from mcphost.console.forms.questions import QuestionForm, form_of


def asking(**properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    params = {"message": "Which <b>one</b>?", "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sent(request: dict[str, Any], action: str, **values: Any) -> QuestionForm:
    fields = {f"answer-k-value-{name}": value for name, value in values.items()}
    return form_of(request, "k", {"answer-k-action": action, **fields})


def opening(url: str) -> dict[str, Any]:
    params = {"mode": "url", "message": "Sign in", "url": url, "elicitationId": "1"}
    return {"method": "elicitation/create", "params": params}


def test_an_accepted_form_returns_its_content() -> None:
    request = asking(
        name={"type": "string", "minLength": 2},
        age={"type": "integer"},
        sure={"type": "boolean"},
        size={"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
        days={"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}]}},
        old={"type": "string", "enum": ["a", "b"], "enumNames": ["Ay", "Be"]},
    )
    values = {"name": "Ada", "age": "36", "sure": "false", "size": "s", "days": ["mo"], "old": "b"}
    form = sent(request, "accept", **values)
    assert form.is_valid(), form.errors
    content = {"name": "Ada", "age": 36, "sure": False, "size": "s", "days": ["mo"], "old": "b"}
    assert form.response() == {"action": "accept", "content": content}
    html = form.as_div()
    assert all(title in html for title in ("Small", "Monday", "Be"))
    assert form.message == "Which <b>one</b>?"


def test_content_is_validated_only_for_accept() -> None:
    request = asking(name={"type": "string", "minLength": 2}, age={"type": "integer"})
    wrong = sent(request, "accept", name="A", age="x")
    assert not wrong.is_valid()
    assert wrong.errors.keys() == {"value-name", "value-age"}
    for action in ("decline", "cancel"):
        form = sent(request, action, age="x")
        assert form.is_valid(), form.errors
        assert form.response() == {"action": action}


def test_a_response_requires_one_of_the_three_actions() -> None:
    request = asking()
    assert form_of(request, "k", {}).errors == {"action": ["Accept, decline or cancel."]}
    assert "action" in sent(request, "perhaps").errors


def test_the_link_of_a_url_request_names_its_host() -> None:
    form = sent(opening("https://bank.example/pay?x=1"), "accept")
    assert (form.url, form.message) == ("https://bank.example/pay?x=1", "Sign in")
    assert form.link_text == "Open bank.example in a new window"
    assert form.is_valid(), form.errors
    assert form.response() == {"action": "accept"}


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://", "http://[", "//a.example"])
def test_an_unsafe_url_has_no_link(url: str) -> None:
    form = form_of(opening(url), "k")
    assert (form.url, form.link_text) == ("", "")
