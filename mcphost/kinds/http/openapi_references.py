"""What the references of an OpenAPI document lead to, and what values the schemas there allow."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from mcphost.kinds.http.openapi_documents import OpenApiError

_INDEX: Final = re.compile(r"[0-9]{1,9}")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
SHAPE: Final = "a part of it has not the shape that OpenAPI gives it"
MAX_REFERENCES: Final = 100
"""How many references may lead from one to the next."""
MAX_WORK: Final = 1_000_000
"""How many schemas are converted for one document, all operations together."""
_MAX_VARIANTS: Final = 500
_COMPOSED: Final = ("allOf", "anyOf", "oneOf")


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
        self._remaining = MAX_WORK
        self._identified: dict[str, Any] | None = None
        self.has_siblings = not str(document.get("openapi", "")).startswith("3.0")
        """Whether keywords beside `$ref` count (OpenAPI 3.1; in 3.0 they are ignored)."""
        self.is_3_2 = str(document.get("openapi", "")).startswith("3.2")

    def work(self) -> None:
        """Count the conversion of one schema. Raises OpenApiError when the document has used all."""
        self._remaining -= 1
        if self._remaining < 0:
            raise OpenApiError(
                f"Its operations have more than {MAX_WORK:,} schemas together. Narrow the paths."
            )

    def follow(self, node: Any) -> Any:
        """Return the node, or what it refers to, after any number of references.

        Raises UnsupportedError for a reference that leads out of the document, to nothing, or to
        itself.
        """
        visited: set[str] = set()
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            reference = node["$ref"]
            if reference in visited:
                raise UnsupportedError(f"{reference[:200]!r} refers to itself")
            if len(visited) == MAX_REFERENCES:
                raise UnsupportedError(f"{reference[:200]!r} is behind too many references")
            visited.add(reference)
            node = self.find(reference)
        return node

    def follow_object(self, node: Any) -> Mapping[str, Any]:
        """Return what a node refers to, which must be an object; an empty one for a missing node."""
        return object_of(self.follow(node))

    def find(self, reference: str) -> Any:
        """Return the node of one reference. Raises UnsupportedError."""
        base, _, fragment = reference.partition("#")
        node: Any = self._document if not base else self._by_id(base, reference)
        if not fragment.startswith("/"):
            return self._by_id(f"#{fragment}", reference) if fragment else node
        for step in fragment[1:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and name in node:
                node = node[name]
            elif isinstance(node, list) and _INDEX.fullmatch(name) and int(name) < len(node):
                node = node[int(name)]
            else:
                raise UnsupportedError(f"{reference[:200]!r} refers to nothing")
        return node

    def _by_id(self, name: str, reference: str) -> Any:
        """Return the schema with this `$id`, or with the anchor of `#name`."""
        if self._identified is None:
            self._identified = dict(_identified(self._document))
        if name in self._identified:
            return self._identified[name]
        where = "nothing" if name.startswith("#") else "something outside the document"
        raise UnsupportedError(f"{reference[:200]!r} refers to {where}")

    def variants(self, schema: Any) -> Iterator[Mapping[str, Any]]:
        """Yield a schema and the schemas that it is composed of, whatever their conditions.

        Raises UnsupportedError.
        """
        visited: set[int] = set()
        waiting = [schema]
        while waiting and len(visited) < _MAX_VARIANTS:
            node = waiting.pop(0)
            if not isinstance(node, Mapping) or id(node) in visited:
                continue
            visited.add(id(node))
            yield node
            if isinstance(node.get("$ref"), str):
                waiting.append(self.find(node["$ref"]))
            for keyword in _COMPOSED:
                branches = node.get(keyword)
                waiting += branches if isinstance(branches, list) else []

    def types(self, schema: Any) -> frozenset[str]:
        """Return the types of JSON that a schema declares somewhere; none if it declares none."""
        return frozenset(name for node in self.variants(schema) for name in _types(node))

    def has_parts(self, schema: Any) -> bool:
        """Whether a value may be a list or an object, as far as the schema says."""
        return bool(self.types(schema) & {"array", "object"})

    def is_nested(self, schema: Any) -> bool:
        """Whether a value may be a list or an object with a list or an object in it."""
        return any(self.has_parts(part) for node in self.variants(schema) for part in _parts(node))


def _identified(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas with an anchor or an `$id`, and what refers to them. The first one counts."""
    waiting: list[Any] = [document]
    names: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            own = [f"#{node[key]}" for key in _ANCHORS if isinstance(node.get(key), str)]
            own += [node["$id"].rstrip("#")] if isinstance(node.get("$id"), str) else []
            yield from ((name, node) for name in own if name not in names)
            names.update(own)
            waiting += reversed(list(node.values()))
        elif isinstance(node, list):
            waiting += reversed(node)


def _types(node: Mapping[str, Any]) -> Iterator[str]:
    kinds = node.get("type")
    if isinstance(kinds, str):
        yield kinds
    elif isinstance(kinds, list):
        yield from (kind for kind in kinds if isinstance(kind, str))
    elif "properties" in node or isinstance(node.get("additionalProperties"), Mapping):
        yield "object"
    elif "items" in node or "prefixItems" in node:
        yield "array"
    else:
        values = node.get("enum")
        for value in values if isinstance(values, list) else ():
            yield "object" if isinstance(value, Mapping) else _NAMES.get(type(value), "null")


_NAMES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
}


def _parts(node: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas of the parts of a list or an object."""
    items, properties = node.get("items"), node.get("properties")
    yield from items if isinstance(items, list) else [items]
    yield from properties.values() if isinstance(properties, Mapping) else ()
    yield node.get("additionalProperties")
