"""Tests that validation reports all problems at once, each for its field."""

from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from mcphost.catalogue import services, validation
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.kinds import KindError
from mcphost.catalogue.models import Primitive
from tests.catalogue.memory_kind import ACTOR, Shelf, fields

pytestmark = pytest.mark.django_db


def problems_of(tenant: UUID, tool: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidPrimitiveError) as refusal:
        validation.check(tenant, validation.normalized(tool))
    return refusal.value.problems


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "has space"),
        ("name", None),
        ("title", "x" * 201),
        ("description", "bad\0"),
        ("scopes", ["echo"]),
        ("scopes", "mcp:echo"),
        ("time_limit_seconds", 0),
        ("answer_within_seconds", 86400.5),
        ("answer_within_seconds", True),
        ("icons", [{"src": "http://example.com"}]),
        *(
            ("icons", [{"src": f"https://example.com/{bad}.png"}])
            for bad in ("\0", "\ud800", "\x7f")
        ),
        *(("kind", kind) for kind in ("carrier-pigeon", None, ["python"], {}, 5, "a\0")),
        *(("config", {"function": "demo.echo", name: 1}) for name in ("a\0", "\ud800", 5)),
        ("config", ["demo.echo"]),
    ],
)
def test_a_bad_value_is_a_problem_of_its_field_alone(acme: UUID, field: str, value: Any) -> None:
    assert list(problems_of(acme, fields(**{field: value}))) == [field]
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.create(acme, fields(**{field: value}), ACTOR)
    assert list(refusal.value.problems) == [field]


def test_an_operator_can_let_questions_wait_for_any_time(acme: UUID, settings: Any) -> None:
    month = 30 * 86_400.0
    assert "answer_within_seconds" in problems_of(acme, fields(answer_within_seconds=month))
    settings.MCPHOST_MAX_ANSWER_SECONDS = month
    validation.check(acme, validation.normalized(fields(answer_within_seconds=month)))


def test_a_function_without_a_grant_is_refused_and_not_compiled(globex: UUID, shelf: Shelf) -> None:
    for function in ("demo.echo", "demo.nothing"):
        assert problems_of(globex, fields(function)) == {
            "config.function": [f"{function} is not granted to this tenant."]
        }
    assert shelf.compiled == []


def test_an_error_of_the_kind_is_a_problem_of_the_configuration(acme: UUID, shelf: Shelf) -> None:
    assert problems_of(acme, fields(config={})) == {"config.function": ["A text is needed."]}
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert "config.extra" in problems_of(acme, fields(config={"function": "f", "extra": deep}))
    shelf.put("demo.echo", input_schema={"type": "array"}, output_schema={"type": "nonsense"})
    (messages,) = problems_of(acme, fields()).values()
    assert messages[0].startswith("The input schema, at ")
    assert any(message.startswith("The output schema, at ") for message in messages)
    shelf.broken["demo.echo"] = KindError({"": ["The file is broken."]})
    assert problems_of(acme, fields()) == {"config": ["The file is broken."]}


def test_a_description_from_the_code_or_the_operator_is_required(acme, shelf):
    shelf.put("demo.echo", description=" \n")
    assert list(problems_of(acme, fields(description="  "))) == ["description"]
    validation.check(acme, fields(description="Says it again."))


NEVER_JSON = {
    "NUL": "a\0b",
    "a lone surrogate": "a\ud800",
    "infinity": float("inf"),
    "a large integer": 2**63,
    "an object": object(),
    "a key that is no text": {1: 2},
}
HTTP = {"request": {"url": "https://api.example.com/orders"}}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "python": {"function": "demo.echo"},
    "http": HTTP,
    "script": {"source": "async def main():\n    return 1\n"},
    "text": {"text": "abc"},
}


@pytest.mark.parametrize("what", NEVER_JSON)
@pytest.mark.parametrize("kind", DEFINITIONS)
def test_a_value_that_is_not_json_is_a_problem_of_its_field_for_every_kind(acme, shelf, kind, what):
    bad = NEVER_JSON[what]
    for value in (bad, [bad], {"deep": [bad]}):
        config = {**DEFINITIONS[kind], "extra": value}
        with pytest.raises(InvalidPrimitiveError) as refusal:
            services.create(acme, fields(kind=kind, config=config, title="x" * 201), ACTOR)
        assert set(refusal.value.problems) == {"config.extra", "title"}
    assert not Primitive.objects.exists()


@pytest.mark.parametrize("kind", ["http", "script"])
def test_inspecting_a_configuration_inside_a_transaction_is_refused(acme: UUID, kind: str) -> None:
    definition = fields(kind=kind, config=DEFINITIONS[kind])
    with transaction.atomic(), pytest.raises(RuntimeError, match="in a transaction"):
        validation.inspect(acme, definition)
