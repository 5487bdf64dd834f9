"""Schemas of an OpenAPI document as JSON Schemas of their own (2020-12).

A schema that is referenced becomes an entry of `$defs`, so a recursive one stays finite. What OpenAPI
3.0 writes in its own way is rewritten: `nullable`, `exclusiveMinimum: true`, `example`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from jsonschema_rs import RegexOptions, ValidationError, validator_for

from mcphost.kinds.http.openapi_documents import OpenApiError

_DROPPED: Final = frozenset(
    {"discriminator", "xml", "externalDocs", "example", "nullable", "$id", "$schema", "$anchor"}
)
_ONE: Final = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
)
_SEVERAL: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_BOUNDS: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
_INDEX: Final = re.compile(r"[0-9]{1,9}")
SHAPE: Final = "a part of it has not the shape that OpenAPI gives it"
MOST_DEPTH: Final = 100
MOST_REFERENCES: Final = 100
"""How many references may lead from one to the next."""
MOST_SCHEMAS: Final = 6_000
"""How many schemas one operation may have."""
MOST_WORK: Final = 1_000_000
"""How many schemas are converted for one document, all operations together."""
MOST_PATTERN: Final = 2_000
"""Longer patterns are left out; the service checks them."""


class UnsupportedError(ValueError):
    """A part of a document cannot be imported; the message gives the reason."""


def object_of(value: Any) -> Mapping[str, Any]:
    """Return an object that a document may leave out, or have empty. Raises UnsupportedError."""
    if value and not isinstance(value, Mapping):
        raise UnsupportedError(SHAPE)
    return value or {}


class References:
    """Finds what a document's `$ref`s refer to. Never looks outside the document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._left = MOST_WORK

    def work(self) -> None:
        """Count the conversion of one schema. Raises OpenApiError when the document has used all."""
        self._left -= 1
        if self._left < 0:
            raise OpenApiError(
                f"Its operations have more than {MOST_WORK:,} schemas together. Narrow the paths."
            )

    def follow(self, node: Any) -> Any:
        """Return the node, or what it refers to, after any number of references.

        Raises UnsupportedError for a reference that leads out of the document, to nothing, or to
        itself.
        """
        seen: set[str] = set()
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            reference = node["$ref"]
            if reference in seen:
                raise UnsupportedError(f"{reference[:200]} refers to itself")
            if len(seen) == MOST_REFERENCES:
                raise UnsupportedError(f"{reference[:200]} is behind too many references")
            seen.add(reference)
            node = self.find(reference)
        return node

    def find(self, reference: str) -> Any:
        """Return the node of one reference. Raises UnsupportedError."""
        if not reference.startswith("#/"):
            raise UnsupportedError(f"{reference[:200]} refers to something outside the document")
        node: Any = self._document
        for step in reference[2:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and name in node:
                node = node[name]
            elif isinstance(node, list) and _INDEX.fullmatch(name) and int(name) < len(node):
                node = node[int(name)]
            else:
                raise UnsupportedError(f"{reference[:200]} refers to nothing")
        return node


class Schemas:
    """Converts the schemas of one operation. `definitions` collects those that are referenced."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._names: dict[str, str] = {}
        self._count = 0
        self._waiting: list[tuple[str, str]] = []
        self.definitions: dict[str, Any] = {}

    def convert(self, schema: Any) -> Any:
        """Return a schema in 2020-12, with references into `$defs`.

        Raises UnsupportedError, and OpenApiError when the document takes too much work.
        """
        converted = self._convert(schema, 0)
        while self._waiting:  # not by recursion: a chain of references may be long
            name, reference = self._waiting.pop()
            self.definitions[name] = self._convert(self._target(reference), 0)
        return converted

    def _target(self, reference: str) -> Any:
        target = self._references.find(reference)
        if isinstance(target, Mapping) and isinstance(target.get("$ref"), str):
            self._references.follow(target)  # a circle of nothing but references has no end
        return target

    def _convert(self, schema: Any, depth: int) -> Any:
        self._references.work()
        self._count += 1
        if self._count > MOST_SCHEMAS:
            raise UnsupportedError(f"it has more than {MOST_SCHEMAS:,} schemas")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise UnsupportedError("a schema is not an object")
        if depth > MOST_DEPTH:
            raise UnsupportedError("a schema is nested too deep")
        if isinstance(schema.get("$ref"), str):
            referred = {"$ref": f"#/$defs/{self._define(schema['$ref'])}"}
            if isinstance(schema.get("description"), str):  # 3.1 allows it beside the reference
                referred["description"] = schema["description"]
            return referred
        plain = {
            keyword: self._keyword(keyword, value, depth)
            for keyword, value in schema.items()
            if keyword not in _DROPPED and not keyword.startswith("x-")
        }
        if "example" in schema and "examples" not in plain:
            plain["examples"] = [schema["example"]]
        _write_bounds(plain)
        pattern = plain.get("pattern", "")
        if not isinstance(pattern, str) or not _is_usable(pattern):
            del plain["pattern"]  # the service checks it
        without = _without_read_only(plain, schema.get("properties"), self._references)
        return _nullable(without) if schema.get("nullable") is True else without

    def _keyword(self, keyword: str, value: Any, depth: int) -> Any:
        if keyword in _ONE:
            return self._convert(value, depth + 1)
        if keyword in _SEVERAL and isinstance(value, Sequence):
            return [self._convert(each, depth + 1) for each in value]
        if keyword in _NAMED and isinstance(value, Mapping):
            return {name: self._convert(each, depth + 1) for name, each in value.items()}
        return value

    def _define(self, reference: str) -> str:
        if reference in self._names:
            return self._names[reference]
        name = _UNFIT.sub("_", unquote(reference.rpartition("/")[2])) or "schema"
        while name in self.definitions:
            name = f"{name}_"
        self._names[reference] = name
        self.definitions[name] = True  # taken, until it is converted
        self._waiting.append((name, reference))
        return name


@lru_cache(maxsize=1024)
def _is_usable(pattern: str) -> bool:
    """Whether a pattern needs linear time only, as those of our schemas must."""
    if len(pattern) > MOST_PATTERN:
        return False
    try:
        validator_for({"pattern": pattern}, offline=True, pattern_options=RegexOptions())
    except (ValidationError, ValueError):
        return False
    return True


def _write_bounds(schema: dict[str, Any]) -> None:
    for exclusive, inclusive in _BOUNDS.items():
        if schema.get(exclusive) is True and inclusive in schema:
            schema[exclusive] = schema.pop(inclusive)
        elif isinstance(schema.get(exclusive), bool):
            del schema[exclusive]


def _without_read_only(
    schema: dict[str, Any], properties: Any, references: References
) -> dict[str, Any]:
    """Leave out properties that only responses have."""
    if not isinstance(properties, Mapping):
        return schema
    given = set()
    for name, each in properties.items():
        try:
            found = references.follow(each)
        except UnsupportedError:
            continue
        if isinstance(found, Mapping) and found.get("readOnly") is True:
            given.add(name)
    if not given:
        return schema
    schema["properties"] = {n: s for n, s in schema["properties"].items() if n not in given}
    if isinstance(schema.get("required"), list):
        schema["required"] = [
            name for name in schema["required"] if not (isinstance(name, str) and name in given)
        ]
    return schema


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str) and "const" not in schema:
        schema["type"] = [kind, "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}
