"""Schemas of an OpenAPI document as JSON Schemas of their own (2020-12).

A schema that is referenced becomes an entry of `$defs`, so a recursive one stays finite. What OpenAPI
3.0 writes in its own way is rewritten: `nullable`, `exclusiveMinimum: true`, `example`. The result never
allows less than the document: what decides among the branches of `oneOf` may be a keyword that only the
service reads, so they become `anyOf`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import orjson

from mcphost.kinds.http.openapi_keywords import is_usable_pattern, nullable, repair, write_bounds
from mcphost.kinds.http.openapi_references import References, UnsupportedError
from mcphost.protocol.clients import add_items
from mcphost.protocol.schemas import MAX_BYTES

_DROPPED: Final = frozenset(
    {
        *("discriminator", "xml", "externalDocs", "example", "nullable", "dependencies"),
        *("$id", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"),
        *("$defs", "definitions"),  # what refers there is converted from the document
    }
)
_SINGLE_SCHEMA: Final = frozenset(
    {
        *("items", "additionalProperties", "not", "if", "then", "else", "contains"),
        *("propertyNames", "unevaluatedProperties", "unevaluatedItems", "contentSchema"),
    }
)
_SEVERAL: Final = {
    "allOf": "allOf",
    "anyOf": "anyOf",
    "oneOf": "anyOf",
    "prefixItems": "prefixItems",
    "items": "prefixItems",
}
"""The keywords with a list of schemas, and what is written for each."""
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")
_WITH_REFERENCE: Final = ("description", "title", "deprecated", "default")
"""The keywords that are kept beside a reference in 3.0, too: they say something of the value."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")
_NO_PROPERTIES: Final[frozenset[str]] = frozenset()
MAX_DEPTH: Final = 100
MAX_SCHEMAS: Final = 6_000
"""How many schemas one operation may have."""
_TEXTS: Final = ("examples", "description", "title", "default", "$comment")
"""Keywords that narrow nothing, and are left out of schemas that are too large."""


class Schemas:
    """Converts the schemas of one operation. `definitions` collects those that are referenced."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._names: dict[str, str] = {}
        self._count = 0
        self._waiting: list[tuple[str, str]] = []
        self._root: str | None = None
        self.definitions: dict[str, Any] = {}

    def convert(self, schema: Any) -> Any:
        """Return a schema in 2020-12, with references into `$defs`.

        Raises UnsupportedError, and OpenApiError when the document takes too much work.
        """
        converted = self._convert(schema, 0, _NO_PROPERTIES)
        while self._waiting:  # not by recursion: a chain of references may be long
            name, reference = self._waiting.pop()
            self._root = reference
            self.definitions[name] = self._convert(self._target(reference), 0, _NO_PROPERTIES)
        self._root = None
        return converted

    def _target(self, reference: str) -> Any:
        target = self._references.find(reference)
        if isinstance(target, Mapping) and isinstance(target.get("$ref"), str):
            self._references.follow(target)  # a circle of nothing but references has no end
        return target

    def _convert(self, schema: Any, depth: int, absent: frozenset[str]) -> Any:
        """Convert a schema. `absent` are properties that only responses have, as another part of the
        same composition says."""
        self._references.work()
        self._count += 1
        if self._count > MAX_SCHEMAS:
            raise UnsupportedError(f"it has more than {MAX_SCHEMAS:,} schemas")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise UnsupportedError("a schema is not an object")
        if depth > MAX_DEPTH:
            raise UnsupportedError("a schema is nested too deep")
        absent |= self._response_only(schema)
        plain: dict[str, Any] = {}
        reference = self._reference(schema)
        if reference is not None:
            if absent and absent & self._required(reference):
                return self._convert(self._target(reference), depth + 1, absent)
            plain["$ref"] = f"#/$defs/{self._define(reference)}"
        if reference is None or self._references.has_siblings:
            self._add_keywords(plain, schema, depth, absent)
        else:
            plain |= {key: schema[key] for key in _WITH_REFERENCE if key in schema}
        if "example" in schema and "examples" not in plain:
            plain["examples"] = [schema["example"]]
        write_bounds(plain)
        repair(plain)
        add_items(plain)
        _leave_out(plain, absent)
        takes_null = True in (schema.get("nullable"), schema.get("x-nullable"))  # 3.0, Swagger 2.0
        return nullable(plain) if takes_null else plain

    def _add_keywords(
        self, plain: dict[str, Any], schema: Mapping[str, Any], depth: int, absent: frozenset[str]
    ) -> None:
        for keyword, value in schema.items():
            if keyword in _DROPPED or keyword.startswith("x-") or keyword in ("$ref", *_DYNAMIC):
                continue
            if keyword in _SEVERAL and isinstance(value, list):
                inner = absent if keyword.endswith("Of") else _NO_PROPERTIES
                if branches := [self._convert(part, depth + 1, inner) for part in value]:
                    _add_branches(plain, _SEVERAL[keyword], branches)
            elif keyword in _SINGLE_SCHEMA and isinstance(value, Mapping | bool):
                plain[keyword] = self._convert(value, depth + 1, _NO_PROPERTIES)
            elif keyword in _NAMED and isinstance(value, Mapping):
                plain[keyword] = {
                    name: self._convert(part, depth + 1, _NO_PROPERTIES)
                    for name, part in value.items()
                }
            elif keyword not in (*_SEVERAL, *_SINGLE_SCHEMA, *_NAMED):
                plain[keyword] = value
        _check_patterns(plain)

    def _reference(self, schema: Mapping[str, Any]) -> str | None:
        """Return what a schema refers to. A dynamic reference is one to its own schema, or to an anchor."""
        if isinstance(schema.get("$ref"), str):
            reference: str = schema["$ref"]
            return reference
        for keyword in _DYNAMIC:
            dynamic = schema.get(keyword)
            if dynamic == "#":
                return self._root
            if isinstance(dynamic, str) and dynamic:
                return dynamic
        return None

    def _response_only(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """Return the properties that only responses have, of a schema and all that it is made of."""
        names: set[str] = set()
        visited: set[int] = set()
        waiting: list[Any] = [schema]
        while waiting:
            node = waiting.pop()
            if not isinstance(node, Mapping) or id(node) in visited:
                continue
            visited.add(id(node))
            properties, branches = node.get("properties"), node.get("allOf")
            for name, part in properties.items() if isinstance(properties, Mapping) else ():
                if self.is_read_only(part):
                    names.add(name)
            waiting += branches if isinstance(branches, list) else []
            if isinstance(node.get("$ref"), str) and node is not schema:
                waiting.append(self._references.find(node["$ref"]))
        return frozenset(names)

    def is_read_only(self, schema: Any) -> bool:
        """Whether only responses have this property."""
        if not isinstance(schema, Mapping):
            return False
        try:
            target = self._references.follow(schema)
        except UnsupportedError:
            return False
        has_keyword = isinstance(target, Mapping) and target.get("readOnly") is True
        return schema.get("readOnly") is True or has_keyword

    def _required(self, reference: str) -> frozenset[str]:
        """Return the properties that a referenced schema requires somewhere."""
        names: set[str] = set()
        for node in self._references.variants({"$ref": reference}):
            required = node.get("required")
            names.update(map(str, required) if isinstance(required, list) else ())
        return frozenset(names)

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


def _add_branches(schema: dict[str, Any], keyword: str, branches: list[Any]) -> None:
    """Add a list of schemas. A second `anyOf`, which was a `oneOf`, holds besides the first."""
    if keyword in schema:
        schema.setdefault("allOf", []).append({keyword: branches})
    else:
        schema[keyword] = branches


def _check_patterns(schema: dict[str, Any]) -> None:
    """Leave out patterns of names that cannot be used, and what then would refuse their properties."""
    patterns = schema.get("patternProperties", {})
    usable = {name: part for name, part in patterns.items() if is_usable_pattern(name)}
    if len(usable) < len(patterns):
        schema["patternProperties"] = usable
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            schema.pop(keyword, None)


def _leave_out(schema: dict[str, Any], absent: frozenset[str]) -> None:
    """Leave out properties that only responses have."""
    if not absent:
        return
    if "properties" in schema:
        schema["properties"] = {n: s for n, s in schema["properties"].items() if n not in absent}
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in absent]


def shorten(schema: dict[str, Any]) -> bool:
    """Leave texts and examples out of a schema that is too large, the deepest first. Return whether
    something was left out."""
    for depth in (8, 6, 4, 3, 2, 1):
        if len(orjson.dumps(schema)) <= MAX_BYTES:
            return depth != 8
        parts = [schema, *schema.get("$defs", {}).values()]
        for part in parts:
            _strip(part, depth)
    return True


def _strip(schema: Any, depth: int) -> None:
    """Leave out the texts of all schemas in a schema that are so many levels below it."""
    if not isinstance(schema, dict):
        return
    if depth <= 0:
        for keyword in _TEXTS:
            schema.pop(keyword, None)
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            parts = list(value.values())
        elif keyword in _SINGLE_SCHEMA:
            parts = [value]
        else:
            parts = value if keyword in _SEVERAL.values() and isinstance(value, list) else []
        for part in parts:
            _strip(part, depth - 1)
