"""Helpers for tests of questions: the schema check for params, and answers."""

from typing import Any

import pytest

from mcphost.runtime.questions import InvalidAnswerError, Question
from mcphost.sdk.questions import form
from tests.wire import check_type


def on_the_wire(question: Question[Any]) -> dict[str, Any]:
    """Return the params of a question after validation against the specification's schema."""
    request = {"method": question.method, "params": question.params}
    check_type("InputRequest", request)
    kinds = {
        "elicitation/create": "ElicitRequest",
        "sampling/createMessage": "CreateMessageRequest",
        "roots/list": "ListRootsRequest",
    }
    check_type(kinds[question.method], request)
    return dict(question.params)


def schema_of(model: Any) -> dict[str, Any]:
    schema = on_the_wire(form("form", "What?", model))["requestedSchema"]
    assert isinstance(schema, dict)
    return schema


def accepted(content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def invalid(question: Question[Any], result: Any) -> str:
    with pytest.raises(InvalidAnswerError) as caught:
        question.read(result)
    return str(caught.value)
