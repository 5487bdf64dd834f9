"""Write `5.0` as `5` wherever an argument's schema, with its `allOf` and `anyOf` parts, says `integer`.

JSON has one kind of number, so `5.0` is a valid integer; services that read paths, forms or JSON by type
refuse it. What a schema does not call an integer is sent as it came, and so is one of more than 64 bits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote

_MAX_DEPTH: Final = 64
_COMPOSED: Final = ("allOf", "anyOf", "oneOf")


class IntegerArguments:
    """Makes integers of the floats in arguments, by their schema, which has passed `check_schema`."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._schema_parts: dict[int, Sequence[Mapping[str, Any]]] = {}

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with integers where the schema says so."""
        if not _has_whole_float(arguments):
            return arguments
        schemas = self._parts_of(self._schema)
        return {
            name: self._read_value(value, _members(schemas, name), 0)
            for name, value in arguments.items()
        }

    def _read_value(self, value: Any, written: Iterable[Any], depth: int) -> Any:
        if depth > _MAX_DEPTH or not _has_whole_float(value):
            return value
        schemas = [part for schema in written for part in self._parts_of(schema)]
        if isinstance(value, dict):
            return {
                name: self._read_value(part, _members(schemas, name), depth + 1)
                for name, part in value.items()
            }
        if isinstance(value, list):
            return [
                self._read_value(part, _elements(schemas, number), depth + 1)
                for number, part in enumerate(value)
            ]
        types = {name for schema in schemas for name in _types(schema)}
        if "integer" not in types or "number" in types:
            return value
        integer = int(Decimal(repr(value)))  # the digits that were written: 1e23 is none in binary
        return integer if -(2**63) <= integer < 2**64 else value

    def _parts_of(self, schema: Any) -> Sequence[Mapping[str, Any]]:
        """Return a schema and those that it is composed of."""
        cached = self._schema_parts.get(id(schema))
        if cached is not None:
            return cached
        parts: dict[int, Mapping[str, Any]] = {}
        waiting = [schema]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Mapping) and id(node) not in parts:
                parts[id(node)] = node
                waiting += [part for key in _COMPOSED for part in node.get(key, ())]
                waiting.append(self._referred(node.get("$ref")))
        composed = self._schema_parts[id(schema)] = list(parts.values())
        return composed

    def _referred(self, reference: Any) -> Any:
        if reference == "#":
            return self._schema
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        node: Any = self._schema
        for step in reference[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, Mapping) else None
        return node


def _has_whole_float(value: Any) -> bool:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, float) and part.is_integer():
            return True
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return False


def _members(schemas: Iterable[Mapping[str, Any]], name: str) -> Iterator[Any]:
    """Yield the schemas of a member of an object."""
    for schema in schemas:
        properties = schema.get("properties", {})
        yield properties.get(name, schema.get("additionalProperties"))


def _elements(schemas: Iterable[Mapping[str, Any]], number: int) -> Iterator[Any]:
    """Yield the schemas of an element of a list."""
    for schema in schemas:
        before, items = schema.get("prefixItems", ()), schema.get("items")
        if isinstance(items, list):  # draft-07
            before, items = items, schema.get("additionalItems")
        yield before[number] if number < len(before) else items


def _types(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]
