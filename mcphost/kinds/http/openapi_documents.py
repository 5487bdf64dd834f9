"""Read the text of an OpenAPI document: JSON or YAML, within limits on its size, depth and values.

YAML is read as JSON has it: keys and dates stay texts. It is built from the parser's events, so that
a limit ends the reading at once. The values of an alias are counted each time that it is used.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import orjson
import yaml

MOST_BYTES: Final = 16 * 1024 * 1024
MOST_DEPTH: Final = 200
MOST_VALUES: Final = 2_000_000
"""How many values a document may have, once its YAML aliases are written out."""

_MERGE: Final = "tag:yaml.org,2002:merge"
_TEXT: Final = "tag:yaml.org,2002:str"
_MAP: Final = "tag:yaml.org,2002:map"
_SEQ: Final = "tag:yaml.org,2002:seq"
_DEEP: Final = f"The document is nested deeper than {MOST_DEPTH} levels."
_MANY: Final = f"The document has more than {MOST_VALUES:,} values."


class OpenApiError(ValueError):
    """This is no OpenAPI document that can be read. The message is for the operator."""


def read(data: bytes, most: int = MOST_BYTES) -> Mapping[str, Any]:
    """Parse a document of JSON or YAML, of at most so many bytes. Raises OpenApiError."""
    if len(data) > most:
        raise OpenApiError(f"The document is larger than {most >> 20} MiB.")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        document = _read_yaml(data)
    else:
        _check_json(document)
    if not isinstance(document, Mapping):
        raise OpenApiError("This is not an OpenAPI document: it is not an object.")
    if "swagger" in document:
        raise OpenApiError("This is a Swagger 2.0 document: convert it to OpenAPI 3 first.")
    version = str(document.get("openapi", ""))
    if not version.startswith(("3.0", "3.1")):
        raise OpenApiError("This is not an OpenAPI 3.0 or 3.1 document: its `openapi` is missing.")
    if not isinstance(document.get("paths"), Mapping):
        raise OpenApiError("The document has no paths.")
    return document


def _check_json(document: Any) -> None:
    """Refuse a document that is too deep or has too many values. Raises OpenApiError."""
    left = MOST_VALUES
    level = [document]
    for _ in range(MOST_DEPTH):
        parts = [part.values() if isinstance(part, dict) else part for part in level]
        left -= sum(map(len, parts))
        if left < 0:
            raise OpenApiError(_MANY)
        level = [child for part in parts for child in part if isinstance(child, dict | list)]
        if not level:
            return
    raise OpenApiError(_DEEP)


class _Loader(yaml.CSafeLoader):
    """Knows which plain words of YAML are numbers, booleans or null; dates stay texts."""


_Loader.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _read_yaml(data: bytes) -> Any:
    try:
        return _Builder(data).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise OpenApiError(f"This is neither JSON nor YAML{where}.") from None
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, OpenApiError):
            raise
        raise OpenApiError("This YAML has values that JSON does not have.") from None


class _Builder:
    """Builds one document of YAML. An alias is the same object again."""

    def __init__(self, data: bytes) -> None:
        self._loader = _Loader(data)
        self._left = MOST_VALUES
        self._anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> Any:
        while not isinstance(event := self._loader.get_event(), yaml.DocumentStartEvent):
            if isinstance(event, yaml.StreamEndEvent):
                return None
        found = self._value(self._loader.get_event(), 0)
        self._loader.get_event()
        if not isinstance(self._loader.get_event(), yaml.StreamEndEvent):
            raise OpenApiError("This YAML has more than one document.")
        return found

    def _value(self, event: Any, depth: int) -> Any:
        self._spend(1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor)
        before = self._left
        if isinstance(event, yaml.ScalarEvent):
            found = self._scalar(event)
        elif depth >= MOST_DEPTH:
            raise OpenApiError(_DEEP)
        elif event.tag not in (None, "!", _MAP, _SEQ):
            raise TypeError(event.tag)
        elif isinstance(event, yaml.MappingStartEvent):
            found = self._mapping(depth + 1)
        else:
            found = self._sequence(depth + 1)
        if event.anchor:
            self._anchors[event.anchor] = found, before - self._left
        return found

    def _alias(self, anchor: str | None) -> Any:
        if anchor is None or anchor not in self._anchors:
            raise OpenApiError(
                f"The YAML alias *{(anchor or '')[:100]} refers to itself, or to nothing."
            )
        found, values = self._anchors[anchor]
        self._spend(values)
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise TypeError("a key is not a text")
            key, value = event.value, self._value(self._loader.get_event(), depth)
            if self._tag(event) == _MERGE:
                for each in value if isinstance(value, list) else [value]:
                    merged = {**each, **merged}
            else:
                found[key] = value
        return {**merged, **found} if merged else found

    def _sequence(self, depth: int) -> list[Any]:
        found = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            found.append(self._value(event, depth))
        return found

    def _scalar(self, event: Any) -> Any:
        tag = self._tag(event)
        if tag == _TEXT:
            return event.value
        found = self._loader.construct_object(yaml.ScalarNode(tag, event.value))
        self._loader.constructed_objects.clear()
        if isinstance(found, float) and not math.isfinite(found):
            return None
        if isinstance(found, int) and not -(2**63) <= found < 2**64:
            return float(found)
        if found is not None and not isinstance(found, str | int | float):
            raise TypeError("a value is not one of JSON")
        return found

    def _tag(self, event: Any) -> str:
        if event.tag and event.tag != "!":
            return str(event.tag)
        resolve: Any = self._loader.resolve
        return str(resolve(yaml.ScalarNode, event.value, event.implicit))

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise OpenApiError(_MANY)
