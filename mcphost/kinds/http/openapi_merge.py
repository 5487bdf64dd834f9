"""Compare a tool with the operation that it was imported from, and merge what both have changed.

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


class Said(NamedTuple):
    """A tool's texts and its configuration."""

    title: str
    description: str
    config: Mapping[str, Any]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Said":
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
    mine: Any
    theirs: Any
    is_conflict: bool

    @property
    def label(self) -> str:
        kind, name = self.part
        return f"{_LABELS[kind]} {name}".strip()

    @property
    def verb(self) -> str:
        """What became of it in the document, in one word."""
        if self.theirs is _MISSING:
            return "removed"
        return "new" if self.mine is _MISSING else "changed"


def changes(
    base: Said | None, mine: Said, theirs: Said, secrets: Collection[str] = ()
) -> Sequence[PartChange]:
    """Return what differs, in the document's order. Without a base each difference is a conflict.

    `secrets` are those that the operator has chosen for this import: they replace others.

    Raises ValueError for a configuration that cannot be read.
    """
    ours, new = _parts(mine), _parts(theirs)
    old = None if base is None else _parts(base)
    found = []
    for part in [*new, *(each for each in ours if each not in new)]:
        was, is_now = ours.get(part), new.get(part)
        if _same(was, is_now) and _secrets(was) != _secrets(is_now) <= frozenset(secrets):
            found.append(PartChange(part, was, is_now, is_conflict=False))
        if _same(was, is_now) or (old is not None and _same(old.get(part), is_now)):
            continue
        conflict = old is None or not _same(old.get(part), was)
        found.append(PartChange(part, was, is_now, conflict))
    return found


def header_change(mine: Said, header: HeaderConfig) -> PartChange | None:
    """Return the change that gives a tool a header, None if it has it. Raises ValueError as `changes`."""
    part, theirs = ("headers", header.name), header.model_dump()
    was = next(
        (
            (kind, name)
            for kind, name in _parts(mine)
            if kind == "headers" and name.lower() == header.name.lower()
        ),
        part,
    )
    before = _parts(mine).get(was)
    return None if before == theirs else PartChange(was, before, theirs, is_conflict=False)


def merged(mine: Said, theirs: Said, taken: Sequence[PartChange]) -> Said:
    """Return the tool with these changes of the document. Raises ValueError as `changes`."""
    parts = _parts(mine)
    for change in taken:
        parts[change.part] = change.theirs
    order = [*_parts(theirs), *parts]
    known = {part: parts[part] for part in order if parts.get(part) is not _MISSING}
    return _assembled(mine, known)


def _same(one: Any, other: Any) -> bool:
    return _plain(one) == _plain(other)


def _plain(value: Any) -> str:
    return _SECRET.sub("{secrets.}", _written(value))


def _secrets(value: Any) -> frozenset[str]:
    return frozenset(_SECRET.findall(_written(value)))


def _written(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _parts(said: Said) -> dict[Part, Any]:
    try:
        config = HttpToolConfig.model_validate(said.config)
    except ValidationError:
        raise ValueError("the configuration cannot be read") from None
    schema = dict(config.input_schema)
    required = schema.pop("required", [])
    if more := [name for name in required if name not in schema.get("properties", {})]:
        schema["required"] = more
    properties, definitions = schema.pop("properties", {}), schema.pop("$defs", {})
    found: dict[Part, Any] = {
        ("title", ""): said.title or _MISSING,
        ("description", ""): said.description or _MISSING,
        ("method", ""): config.request.method,
        ("url", ""): config.request.url,
        ("rules", ""): schema,
        **{
            ("argument", name): {"schema": each, "required": name in required}
            for name, each in properties.items()
        },
        **{("definition", name): each for name, each in definitions.items()},
    }
    for kind in _LISTS:
        numbers: dict[str, int] = {}
        for field in getattr(config.request, kind):
            # A name may be there twice, with values of its own.
            number = numbers[field.name] = numbers.get(field.name, 0) + 1
            name = field.name if number == 1 else f"{field.name} ({number})"
            found[kind, name] = field.model_dump()
    body = config.request.body
    found["body", ""] = body.model_dump() if body is not None else _MISSING
    return found


def _assembled(mine: Said, parts: Mapping[Part, Any]) -> Said:
    """Return the tool with these parts, and with what is no part as it is."""

    def of(kind: str) -> dict[str, Any]:
        return {name: value for (each, name), value in parts.items() if each == kind}

    arguments, definitions = of("argument"), of("definition")
    schema = {
        **parts["rules", ""],
        "properties": {name: each["schema"] for name, each in arguments.items()},
        "required": [
            *(name for name, each in arguments.items() if each["required"]),
            *parts["rules", ""].get("required", []),
        ],
    }
    if definitions:
        schema["$defs"] = definitions
    request = {
        **mine.config["request"],
        "method": parts["method", ""],
        "url": parts["url", ""],
        **{kind: list(of(kind).values()) for kind in _LISTS},
    }
    request.pop("body", None)
    if ("body", "") in parts:
        request["body"] = parts["body", ""]
    config = {**mine.config, "input_schema": schema, "request": request}
    return Said(parts.get(("title", ""), ""), parts.get(("description", ""), ""), config)
