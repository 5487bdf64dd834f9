"""Declarations of functions, written by one process and read by another."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from mcphost.kinds import declarations
from mcphost.kinds.declarations import ABSENT_PROGRAM
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.prompts import PromptArgument
from mcphost.runtime.program import TaskSupport

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
PLAIN = Compiled("echo", SCHEMA, ABSENT_PROGRAM)
OTHER: dict[str, Any] = {
    "name": "shout",
    "input_schema": {"type": "object", "properties": {"n": {"type": "number", "default": 1.5}}},
    "output_schema": {"type": "object"},
    "title": "Shout",
    "description": "Shouts.",
    "annotations": {"readOnlyHint": True, "title": "Shout"},
    "author_version": "2",
    "requires": ("elicitation.form", "sampling"),
    "time_limit": 2.5,
    "primitive_type": PrimitiveType.PROMPT,
    "uri": "memo://{name}",
    "mime_type": "text/plain",
    "size": 7,
    "arguments": (PromptArgument("a", "A", "The first.", required=True), PromptArgument("b")),
    "completer": ABSENT_PROGRAM,
    "answer_within": 60.0,
    "claims": False,
    "unasked": True,
    "task_support": TaskSupport.ALWAYS,
    "retries": 3,
}
"""For each field another value than that of PLAIN."""


def test_every_declaration_field_has_a_test_value() -> None:
    names = {field.name for field in fields(Compiled)} - {"program"}
    assert OTHER.keys() == names
    assert all(OTHER[name] != getattr(PLAIN, name) for name in names)


@pytest.mark.parametrize("field", OTHER)
def test_every_field_is_read_by_another_process_as_it_was_written(field: str) -> None:
    changed = replace(PLAIN, **{field: OTHER[field]})
    assert declarations.read(declarations.write(changed)) == changed
    assert declarations.write(changed) != declarations.write(PLAIN)


def changed(**members: Any) -> str:
    return json.dumps({**json.loads(declarations.write(PLAIN)), **members})


def test_fields_of_a_newer_version_are_ignored() -> None:
    argument = {"name": "a", "required": True, "pattern": "^a"}
    newer = changed(invented={"a": 1}, program="x", completer="x", arguments=[argument])
    read = declarations.read(newer)
    assert read == replace(PLAIN, arguments=(PromptArgument("a", required=True),))


@pytest.mark.parametrize("field", ["title", "retries", "answer_within", "claims", "unasked"])
def test_a_field_missing_in_an_older_version_has_its_default(field: str) -> None:
    older = json.loads(declarations.write(replace(PLAIN, **{field: OTHER[field]})))
    del older[field]
    assert declarations.read(json.dumps(older)) == PLAIN


DAMAGED = [
    "",
    "{",
    "[]",
    "[" * 100_000,
    changed(primitive_type="invented"),
    changed(task_support="sometimes"),
    changed(requires=None),
    changed(arguments=[5]),
    json.dumps({"completes": False, "primitive_type": "tool"}),
]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_text_raises_the_documented_errors(text: str) -> None:
    with pytest.raises(declarations.UNREADABLE):
        declarations.read(text)
