"""Turn recorded questions and answers into texts, fields and pieces for display.

An answer is whatever the client sent: a value of an unexpected shape is shown as it is.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcphost.audit.entries import EntryView, PayloadView
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED
from mcphost.console.forms.previews import MAX_TEXT, Piece
from mcphost.console.forms.uploads import Blob

LONG = 700
"""Characters; longer content is folded."""

_ROLES = frozenset({"user", "assistant"})
_TYPES: Mapping[str, str] = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "yes or no",
}
_SAMPLING = ("systemPrompt", "maxTokens", "temperature", "stopSequences", "includeContext")
_SAMPLED = ("model", "stopReason")
Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DisplayedPayload:
    """The payload of one entry for display: a text, named values, pieces of a conversation.

    `raw` is all of it as it was sent; `problem` says why it cannot be read.
    """

    text: str = ""
    facts: Facts = ()
    pieces: tuple[Piece, ...] = ()
    raw: Any = None
    problem: str = ""

    @property
    def is_long(self) -> bool:
        """Whether it would fill the page."""
        length = sum(len(value) for _, value in self.facts)
        return length + sum(len(piece.text) for piece in self.pieces) > LONG


def display(entry: EntryView, payload: PayloadView) -> DisplayedPayload:
    """Return the payload of an entry for display."""
    if payload.problem:
        return DisplayedPayload(problem=payload.problem)
    content = _mapping(payload.content)
    if entry.action == QUESTION_ASKED:
        return _question(_mapping(content.get("question")))
    if entry.action == ANSWER_RECEIVED:
        return _answer(_mapping(content.get("answer")))
    return DisplayedPayload(raw=payload.content)


def _question(params: Mapping[str, Any]) -> DisplayedPayload:
    if "messages" in params:
        turns = (_turn(_mapping(message)) for message in _list(params["messages"]))
        pieces = tuple(piece for turn in turns for piece in turn)
        return DisplayedPayload(facts=_named_facts(params, _SAMPLING), pieces=pieces, raw=params)
    text = _text(params.get("message", ""))
    if "url" in params:
        return DisplayedPayload(text, (("Opens", _text(params["url"])),), raw=params)
    return DisplayedPayload(text, _fields(_mapping(params.get("requestedSchema"))), raw=params)


def _answer(result: Mapping[str, Any]) -> DisplayedPayload:
    if "roots" in result:
        facts = []
        for root in _list(result["roots"]):
            folder = _mapping(root)
            facts.append((_text(folder.get("name") or "Folder"), _text(folder.get("uri", root))))
        return DisplayedPayload(facts=tuple(facts), raw=result)
    if "role" in result:
        return DisplayedPayload(
            facts=_named_facts(result, _SAMPLED), pieces=tuple(_turn(result)), raw=result
        )
    content = _mapping(result.get("content"))
    return DisplayedPayload(
        facts=tuple((name, _value(field_value)) for name, field_value in content.items()),
        raw=result,
    )


def _named_facts(values: Mapping[str, Any], names: Iterable[str]) -> Facts:
    """Return those of the values that have one of the names: `maxTokens` as "Max tokens"."""
    facts = []
    for name in names:
        if name in values:
            words = "".join(
                f" {character.lower()}" if character.isupper() else character for character in name
            )
            facts.append((words.capitalize(), _value(values[name])))
    return tuple(facts)


def _fields(schema: Mapping[str, Any]) -> Facts:
    """Return each field of a form, and the values that it takes."""
    required = _list(schema.get("required"))
    facts = []
    for name, property_schema in _mapping(schema.get("properties")).items():
        field = _mapping(property_schema)
        if choices := _choices(field):
            takes = [f"one of {', '.join(choices)}"]
        elif several := _choices(_mapping(field.get("items"))):
            takes = [f"any of {', '.join(several)}"]
        else:
            takes = [_TYPES.get(_text(field.get("type", "")), "a value")]
        if "default" in field:
            takes.append(f"suggested: {_value(field['default'])}")
        if name not in required:
            takes.append("optional")
        facts.append((_text(field.get("title") or name), ", ".join(takes)))
    return tuple(facts)


def fields_of(schema: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what each field of a form is called, by its name."""
    properties = _mapping(schema.get("properties"))
    return {name: _text(_mapping(field).get("title") or name) for name, field in properties.items()}


def value_in_words(value: Any, schema: Mapping[str, Any], name: str) -> str:
    """Return the value of a field of a form as the form shows it: a choice by its title."""
    field = _mapping(_mapping(schema.get("properties")).get(name))
    titles = _titles(field) | _titles(_mapping(field.get("items")))
    if isinstance(value, list):
        return ", ".join(titles.get(str(part), _value(part)) for part in value)
    return titles.get(str(value), _value(value))


def _titles(field: Mapping[str, Any]) -> dict[str, str]:
    """The titles of the choices of a field, by their values."""
    choices = [_mapping(choice) for choice in _list(field.get("oneOf") or field.get("anyOf"))]
    titles = {str(choice.get("const")): _text(choice.get("title") or "") for choice in choices}
    titles.update(
        zip(
            map(str, _list(field.get("enum"))),
            map(_text, _list(field.get("enumNames"))),
            strict=False,
        )
    )
    return {value: title for value, title in titles.items() if title}


def _choices(field: Mapping[str, Any]) -> list[str]:
    titled = [
        _value(_mapping(choice).get("title") or _mapping(choice).get("const"))
        for choice in _list(field.get("oneOf") or field.get("anyOf"))
    ]
    return titled or [_value(choice) for choice in _list(field.get("enum"))]


def _turn(message: Mapping[str, Any]) -> list[Piece]:
    """Return the pieces of one message: one block of content, or several."""
    content, role = message.get("content"), _text(message.get("role", ""))
    role = role if role in _ROLES else ""
    pieces = []
    for part in content if isinstance(content, list) else [content]:
        block = _mapping(part)
        data, mime_type = block.get("data"), block.get("mimeType", "")
        if isinstance(data, str) and isinstance(mime_type, str):
            with suppress(ValueError):
                pieces.append(Piece(role=role, blob=Blob.of(mime_type, data)))
                continue
        text = _text(block["text"]) if "text" in block else _text(block)
        pieces.append(Piece(role=role, text=text[:MAX_TEXT], cut=len(text) > MAX_TEXT))
    return pieces


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return "none" if value is None else _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []
