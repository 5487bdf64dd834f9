"""Turn recorded questions and answers into texts, fields and pieces for display.

An answer is whatever the client sent: a value of an unexpected shape is shown as it is.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcphost.audit.entries import EntryView, PayloadView
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED
from mcphost.console.forms.previews import MAX_TEXT, Piece
from mcphost.console.forms.uploads import Blob
from mcphost.listings.form_values import list_of, mapping_of, text_of, value_text

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
    content = mapping_of(payload.content)
    if entry.action == QUESTION_ASKED:
        return _question(mapping_of(content.get("question")))
    if entry.action == ANSWER_RECEIVED:
        return _answer(mapping_of(content.get("answer")))
    return DisplayedPayload(raw=payload.content)


def _question(params: Mapping[str, Any]) -> DisplayedPayload:
    if "messages" in params:
        turns = (_turn(mapping_of(message)) for message in list_of(params["messages"]))
        pieces = tuple(piece for turn in turns for piece in turn)
        return DisplayedPayload(facts=_named_facts(params, _SAMPLING), pieces=pieces, raw=params)
    text = text_of(params.get("message", ""))
    if "url" in params:
        return DisplayedPayload(text, (("Opens", text_of(params["url"])),), raw=params)
    return DisplayedPayload(text, _fields(mapping_of(params.get("requestedSchema"))), raw=params)


def _answer(result: Mapping[str, Any]) -> DisplayedPayload:
    if "roots" in result:
        facts = []
        for root in list_of(result["roots"]):
            folder = mapping_of(root)
            facts.append(
                (text_of(folder.get("name") or "Folder"), text_of(folder.get("uri", root)))
            )
        return DisplayedPayload(facts=tuple(facts), raw=result)
    if "role" in result:
        return DisplayedPayload(
            facts=_named_facts(result, _SAMPLED), pieces=tuple(_turn(result)), raw=result
        )
    content = mapping_of(result.get("content"))
    return DisplayedPayload(
        facts=tuple((name, value_text(field_value)) for name, field_value in content.items()),
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
            facts.append((words.capitalize(), value_text(values[name])))
    return tuple(facts)


def _fields(schema: Mapping[str, Any]) -> Facts:
    """Return each field of a form, and the values that it takes."""
    required = list_of(schema.get("required"))
    facts = []
    for name, property_schema in mapping_of(schema.get("properties")).items():
        field = mapping_of(property_schema)
        if choices := _choices(field):
            takes = [f"one of {', '.join(choices)}"]
        elif several := _choices(mapping_of(field.get("items"))):
            takes = [f"any of {', '.join(several)}"]
        else:
            takes = [_TYPES.get(text_of(field.get("type", "")), "a value")]
        if "default" in field:
            takes.append(f"suggested: {value_text(field['default'])}")
        if name not in required:
            takes.append("optional")
        facts.append((text_of(field.get("title") or name), ", ".join(takes)))
    return tuple(facts)


def _choices(field: Mapping[str, Any]) -> list[str]:
    titled = [
        value_text(mapping_of(choice).get("title") or mapping_of(choice).get("const"))
        for choice in list_of(field.get("oneOf") or field.get("anyOf"))
    ]
    return titled or [value_text(choice) for choice in list_of(field.get("enum"))]


def _turn(message: Mapping[str, Any]) -> list[Piece]:
    """Return the pieces of one message: one block of content, or several."""
    content, role = message.get("content"), text_of(message.get("role", ""))
    role = role if role in _ROLES else ""
    pieces = []
    for part in content if isinstance(content, list) else [content]:
        block = mapping_of(part)
        data, mime_type = block.get("data"), block.get("mimeType", "")
        if isinstance(data, str) and isinstance(mime_type, str):
            with suppress(ValueError):
                pieces.append(Piece(role=role, blob=Blob.of(mime_type, data)))
                continue
        text = text_of(block["text"]) if "text" in block else text_of(block)
        pieces.append(Piece(role=role, text=text[:MAX_TEXT], cut=len(text) > MAX_TEXT))
    return pieces
