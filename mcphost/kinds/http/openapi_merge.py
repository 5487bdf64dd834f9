"""Compare a tool with the operation that it was imported from (each part with its label), and merge what
both have changed.

Each part of a tool (a text, an argument, a header) is compared in three states: as the document was at
the last import, as it is now, and as the tool is. A part that only the operator has changed stays, one
that only the document has changed is taken over, and one that both have changed is a conflict.
Names of secrets are the operator's, and make no difference unless the operator has just chosen them.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from pydantic import ValidationError

from mcphost.kinds.http.configs import HeaderConfig, HttpToolConfig

Part = tuple[str, str]
"""What it is a part of, and its name there; a part that exists once has an empty name."""

_LABELS: Final[Mapping[str, str]] = {
    "title": "Title",
    "description": "Description",
    "argument": "Argument",
    "rules": "Rules of the arguments",
    "definition": "Definition",
    "method": "Method",
    "url": "Address",
    "path": "Style of the path parameter",
    "query": "Parameter of the query",
    "headers": "Header",
    "body": "Body",
}
_LISTS: Final = ("path", "query", "headers")
_SECRET: Final = re.compile(r"\{secrets\.([^{}]+)\}")
_MISSING: Final = None


class ToolContent(NamedTuple):
    """A tool's texts and its configuration."""

    title: str
    description: str
    config: Mapping[str, Any]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "ToolContent":
        """Return what `stored` gave."""
        return cls(stored["title"], stored["description"], stored["config"])

    @property
    def stored(self) -> dict[str, Any]:
        """The same as JSON."""
        return self._asdict()


class PartChange(NamedTuple):
    """A part that the document has changed since the last import. None stands for a missing part.

    `is_conflict`: the operator has changed it as well.
    """

    part: Part
    current: Any
    incoming: Any
    is_conflict: bool

    @property
    def label(self) -> str:
        kind, name = self.part
        return f"{_LABELS[kind]} {name}".strip()

    @property
    def verb(self) -> str:
        """What became of it in the document, in one word."""
        if self.incoming is _MISSING:
            return "removed"
        return "new" if self.current is _MISSING else "changed"


def changes(
    base: ToolContent | None,
    current: ToolContent,
    incoming: ToolContent,
    secrets: Collection[str] = (),
) -> Sequence[PartChange]:
    """Return what differs, in the document's order. Without a base each difference is a conflict.

    `secrets` are those that the operator has chosen for this import: they replace others.

    Raises ValueError for a configuration that cannot be read.
    """
    current_parts, incoming_parts = _parts(current), _parts(incoming)
    base_parts = None if base is None else _parts(base)
    part_changes = []
    for part in [*incoming_parts, *(part for part in current_parts if part not in incoming_parts)]:
        was, is_now = current_parts.get(part), incoming_parts.get(part)
        if _same(was, is_now) and _secrets(was) != _secrets(is_now) <= frozenset(secrets):
            part_changes.append(PartChange(part, was, is_now, is_conflict=False))
        if _same(was, is_now) or (base_parts is not None and _same(base_parts.get(part), is_now)):
            continue
        conflict = base_parts is None or not _same(base_parts.get(part), was)
        part_changes.append(PartChange(part, was, is_now, conflict))
    return part_changes


def header_change(current: ToolContent, header: HeaderConfig) -> PartChange | None:
    """Return the change that gives a tool a header, None if it has it. Raises ValueError as `changes`."""
    part, incoming = ("headers", header.name), header.model_dump()
    was = next(
        (
            (kind, name)
            for kind, name in _parts(current)
            if kind == "headers" and name.lower() == header.name.lower()
        ),
        part,
    )
    before = _parts(current).get(was)
    return None if before == incoming else PartChange(was, before, incoming, is_conflict=False)


def merged(
    current: ToolContent, incoming: ToolContent, accepted: Sequence[PartChange]
) -> ToolContent:
    """Return the tool with these changes of the document. Raises ValueError as `changes`."""
    parts = _parts(current)
    for change in accepted:
        parts[change.part] = change.incoming
    order = [*_parts(incoming), *parts]
    present = {part: parts[part] for part in order if parts.get(part) is not _MISSING}
    return _assembled(current, present)


def _same(first: Any, second: Any) -> bool:
    return _plain(first) == _plain(second)


def _plain(value: Any) -> str:
    return _SECRET.sub("{secrets.}", _written(value))


def _secrets(value: Any) -> frozenset[str]:
    return frozenset(_SECRET.findall(_written(value)))


def _written(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _parts(content: ToolContent) -> dict[Part, Any]:
    try:
        config = HttpToolConfig.model_validate(content.config)
    except ValidationError:
        raise ValueError("the configuration cannot be read") from None
    schema = dict(config.input_schema)
    required = schema.pop("required", [])
    if more := [name for name in required if name not in schema.get("properties", {})]:
        schema["required"] = more
    properties, definitions = schema.pop("properties", {}), schema.pop("$defs", {})
    parts: dict[Part, Any] = {
        ("title", ""): content.title or _MISSING,
        ("description", ""): content.description or _MISSING,
        ("method", ""): config.request.method,
        ("url", ""): config.request.url,
        ("rules", ""): schema,
        **{
            ("argument", name): {"schema": argument_schema, "required": name in required}
            for name, argument_schema in properties.items()
        },
        **{("definition", name): definition for name, definition in definitions.items()},
    }
    for kind in _LISTS:
        numbers: dict[str, int] = {}
        for field in getattr(config.request, kind):
            # A name may be there twice, with values of its own.
            number = numbers[field.name] = numbers.get(field.name, 0) + 1
            name = field.name if number == 1 else f"{field.name} ({number})"
            parts[kind, name] = field.model_dump()
    body = config.request.body
    parts["body", ""] = body.model_dump() if body is not None else _MISSING
    return parts


def _assembled(current: ToolContent, parts: Mapping[Part, Any]) -> ToolContent:
    """Return the tool with these parts, and with what is no part as it is."""

    def of(kind: str) -> dict[str, Any]:
        return {name: value for (part_kind, name), value in parts.items() if part_kind == kind}

    arguments, definitions = of("argument"), of("definition")
    schema = {
        **parts["rules", ""],
        "properties": {name: argument["schema"] for name, argument in arguments.items()},
        "required": [
            *(name for name, argument in arguments.items() if argument["required"]),
            *parts["rules", ""].get("required", []),
        ],
    }
    if definitions:
        schema["$defs"] = definitions
    request = {
        **current.config["request"],
        "method": parts["method", ""],
        "url": parts["url", ""],
        **{kind: list(of(kind).values()) for kind in _LISTS},
    }
    request.pop("body", None)
    if ("body", "") in parts:
        request["body"] = parts["body", ""]
    config = {**current.config, "input_schema": schema, "request": request}
    return ToolContent(parts.get(("title", ""), ""), parts.get(("description", ""), ""), config)
