"""Read the text of an OpenAPI document: JSON or YAML, within limits on its size, depth and values.

YAML is read as JSON has it, by the core schema of YAML 1.2 (section 10.3) and with merge keys: keys, dates
and words such as `yes` stay texts, and so does what is written where OpenAPI has a text. It is built from
the parser's events, so that a limit ends the reading at once. The values of an alias are counted each time
that it is used.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson
import yaml

from mcphost.kinds.http.openapi_scalars import PlainScalar, resolved
from mcphost.kinds.yaml_scalars import MAX_INTEGER_DIGITS, PLAIN_SCALAR

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 200
MAX_VALUES: Final = 2_000_000
"""How many values a document may have, once its YAML aliases are written out."""

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_MAP: Final = f"{_TAG}map"
_SEQ: Final = f"{_TAG}seq"
_VALUES: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "null": ("null", lambda text: None),
    "true": ("bool", lambda text: True),
    "false": ("bool", lambda text: False),
    "int": ("int", lambda text: _integer(text, 10)),
    "octal": ("int", lambda text: _integer(text, 8)),
    "hex": ("int", lambda text: _integer(text, 16)),
    "float": ("float", lambda text: _number(float(text))),
    "infinite": ("float", lambda text: None),
}
"""The tag and the value of what each group of `PLAIN_SCALAR` matches."""
_SWAGGER: Final = re.compile(r"2\.0(\..*)?")
_OPENAPI: Final = re.compile(r"3\.[012]([.-].*)?")
_NO_JSON: Final = "This YAML has values that JSON does not have."
_DEEP: Final = f"The document is nested deeper than {MAX_DEPTH} levels."
_MANY: Final = f"The document has more than {MAX_VALUES:,} values."


class OpenApiError(ValueError):
    """This is no OpenAPI document that can be read. The message is for the operator."""


def read(data: bytes, max_bytes: int = MAX_BYTES) -> Mapping[str, Any]:
    """Parse a document of JSON or YAML, of at most so many bytes: OpenAPI 3 or Swagger 2.0.

    Raises OpenApiError.
    """
    if len(data) > max_bytes:
        raise OpenApiError(f"The document is larger than {max_bytes >> 20} MiB.")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        document = _read_yaml(data)
    else:
        _check_json(document)
    if not isinstance(document, Mapping):
        raise OpenApiError("This is not an OpenAPI document: it is not an object.")
    version = str(document.get("swagger", document.get("openapi", "")))
    if not (_SWAGGER if "swagger" in document else _OPENAPI).fullmatch(version):
        reason = (
            f"version {version[:40]} is not supported" if version else "its `openapi` is missing"
        )
        raise OpenApiError(
            f"This is not a document of OpenAPI 3.0, 3.1 or 3.2, or of Swagger 2.0: {reason}."
        )
    if not isinstance(document.get("paths"), Mapping):
        raise OpenApiError("The document has no paths.")
    return document


def _check_json(document: Any) -> None:
    """Refuse a document that is too deep or has too many values. Raises OpenApiError."""
    remaining = MAX_VALUES
    level = [document]
    for _ in range(MAX_DEPTH):
        parts = [part.values() if isinstance(part, dict) else part for part in level]
        remaining -= sum(map(len, parts))
        if remaining < 0:
            raise OpenApiError(_MANY)
        level = [child for part in parts for child in part if isinstance(child, dict | list)]
        if not level:
            return
    raise OpenApiError(_DEEP)


def _read_yaml(data: bytes) -> Any:
    try:
        return resolved(_Builder(data).document())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise OpenApiError(f"This is neither JSON nor YAML{where}.") from None


class _Builder:
    """Builds one document of YAML. An alias is the same object again."""

    def __init__(self, data: bytes) -> None:
        self._loader = yaml.CSafeLoader(data)
        self._remaining = MAX_VALUES
        self._anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> Any:
        while not isinstance(event := self._loader.get_event(), yaml.DocumentStartEvent):
            if isinstance(event, yaml.StreamEndEvent):
                return None
        root = self._value(self._loader.get_event(), 0)
        self._loader.get_event()
        if not isinstance(self._loader.get_event(), yaml.StreamEndEvent):
            raise OpenApiError("This YAML has more than one document.")
        return root

    def _value(self, event: Any, depth: int) -> Any:
        self._spend(1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor)
        before = self._remaining
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif depth >= MAX_DEPTH:
            raise OpenApiError(_DEEP)
        elif event.tag not in (None, "!", _MAP, _SEQ):
            raise OpenApiError(_NO_JSON)
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(depth + 1)
        else:
            value = self._sequence(depth + 1)
        if event.anchor:
            self._anchors[event.anchor] = value, before - self._remaining
        return value

    def _alias(self, anchor: str | None) -> Any:
        if anchor is None or anchor not in self._anchors:
            raise OpenApiError(
                f"The YAML alias *{(anchor or '')[:100]} refers to itself, or to nothing."
            )
        value, values = self._anchors[anchor]
        self._spend(values)
        return value

    def _mapping(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise OpenApiError(_NO_JSON)
            key, value = event.value, self._value(self._loader.get_event(), depth)
            if event.tag == _MERGE or (_is_plain(event) and key == "<<"):
                for merge_source in value if isinstance(value, list) else [value]:
                    for name, member in _members(merge_source):
                        merged.setdefault(name, member)
            else:
                members[key] = value
        return {**merged, **members} if merged else members

    def _sequence(self, depth: int) -> list[Any]:
        values = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            values.append(self._value(event, depth))
        return values

    def _spend(self, values: int) -> None:
        self._remaining -= values
        if self._remaining < 0:
            raise OpenApiError(_MANY)


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise OpenApiError(_NO_JSON)
    return value.items()


def _is_plain(event: yaml.ScalarEvent) -> bool:
    """Whether a scalar has no tag and no quotes, so that its text decides what it is."""
    return event.tag is None and event.implicit[0]


def _scalar(event: yaml.ScalarEvent) -> Any:
    """Return the value of a scalar, with its text if it has no tag. Raises OpenApiError for one that JSON
    does not have."""
    if not _is_plain(event) and event.tag in (None, "!", f"{_TAG}str"):
        return event.value
    matched = PLAIN_SCALAR.fullmatch(event.value)
    if matched is None or matched.lastgroup is None:
        if event.tag is None:
            return event.value
        raise OpenApiError(_NO_JSON)
    tag, read = _VALUES[matched.lastgroup]
    if event.tag not in (None, f"{_TAG}{tag}") and (event.tag, tag) != (f"{_TAG}float", "int"):
        raise OpenApiError(_NO_JSON)
    value = read(event.value)
    return value if event.tag else PlainScalar(value, event.value)


def _integer(text: str, base: int) -> int | float | None:
    if len(text) > MAX_INTEGER_DIGITS:
        return _number(float(text)) if base == 10 else None
    value = int(text, base)
    return value if -(2**63) <= value < 2**64 else float(value)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
