"""The subschemas of a JSON Schema, and how they refer to one another.

The threats: a small schema whose references, written out, have no end, or more parts than memory holds; one
that leads a validator in a circle without a step into the value; and a reference, an anchor or a secret that
a check overlooks because it stands where only validators look.

A schema is walked keyword by keyword, so that a property called `$ref`, or an example that looks
like a schema, is not taken for one. The keywords are those of 2020-12 and of draft-07 together:
none of them means a schema in one dialect and something else in the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

Path = tuple[str, ...]
"""A place in a JSON document: the steps of a JSON Pointer (RFC 6901)."""

Edges = dict[Path, list[Path]]

_SINGLE: Final = frozenset(
    {
        *("additionalProperties", "unevaluatedProperties", "propertyNames"),
        *("items", "additionalItems", "unevaluatedItems", "contains"),
        *("not", "if", "then", "else", "contentSchema"),
    }
)
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_MAPS: Final = frozenset(
    {
        *("properties", "patternProperties", "dependentSchemas", "dependencies"),
        *("$defs", "definitions"),
    }
)
_IN_PLACE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
"""The keywords whose subschemas apply to the same value, not to a part of it."""

_REFERENCES: Final = ("$ref", "$dynamicRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")


@dataclass(frozen=True, slots=True)
class Subschema:
    """One subschema of a schema, or the root itself.

    `keywords` is empty for `true` and `false`. `properties` is the chain of property names from the
    root to here; None if the path contains any keyword but `properties`.
    """

    path: Path
    parent: Path
    keywords: Mapping[str, Any]
    depth: int
    properties: tuple[str, ...] | None
    in_place: bool


def walk(root: Mapping[str, Any]) -> Iterator[Subschema]:
    """Yield all subschemas of a document, the root first. It must be finite: JSON that was parsed."""
    queue = [Subschema((), (), root, 1, (), False)]
    for parent in queue:
        yield parent
        for keyword, value in parent.keywords.items():
            chain = parent.properties if keyword == "properties" else None
            queue.extend(
                Subschema(
                    path=(*parent.path, keyword, *steps),
                    parent=parent.path,
                    keywords=schema if isinstance(schema, Mapping) else {},
                    depth=parent.depth + 1,
                    properties=None if chain is None else (*chain, *steps),
                    in_place=keyword in _IN_PLACE,
                )
                for steps, schema in _schemas(keyword, value)
                if isinstance(schema, Mapping | bool)
            )


def _schemas(keyword: str, value: Any) -> Iterator[tuple[Path, Any]]:
    if keyword in _MAPS and isinstance(value, Mapping):
        yield from (((name,), schema) for name, schema in value.items())
    elif keyword in _LISTS and isinstance(value, list):
        yield from (((str(index),), schema) for index, schema in enumerate(value))
    elif keyword in _SINGLE:
        yield (), value


def pointer(path: Sequence[str]) -> str:
    """Return a path as a JSON Pointer; the root is the empty string."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def references(subschema: Subschema) -> list[tuple[str, str]]:
    """Return the references in a schema's own keywords, each with its keyword."""
    values = ((keyword, subschema.keywords.get(keyword)) for keyword in _REFERENCES)
    return [(keyword, value) for keyword, value in values if isinstance(value, str)]


def anchors(subschema: Subschema) -> list[tuple[str, str]]:
    """Return the anchors that a schema declares, each with its keyword."""
    values = ((keyword, subschema.keywords.get(keyword)) for keyword in _ANCHORS)
    return [(keyword, value) for keyword, value in values if isinstance(value, str)]


class Document:
    """A walked schema: its subschemas by path and by anchor, and the edges between them."""

    def __init__(self, subschemas: Sequence[Subschema]) -> None:
        self._by_path = {subschema.path: subschema for subschema in subschemas}
        self._by_anchor = {
            name: subschema.path for subschema in subschemas for _, name in anchors(subschema)
        }

    def find(self, reference: str) -> Path | None:
        """Return the path that a `#…` reference points to; None if no schema is there."""
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            return self._by_anchor.get(fragment)
        steps = fragment.split("/")[1:]
        path = tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)
        return path if path in self._by_path else None

    def edges(self, *, in_place: bool) -> Edges:
        """Return the edges from each schema; with `in_place`, only those to schemas that apply to
        the same value."""
        edges: Edges = {path: [] for path in self._by_path}
        for path, subschema in self._by_path.items():
            if path and (subschema.in_place or not in_place):
                edges[subschema.parent].append(path)
            targets = (self.find(reference) for _, reference in references(subschema))
            edges[path].extend(target for target in targets if target is not None)
        return edges


def weigh(edges: Edges) -> tuple[int, Path | None]:
    """Count the subschemas that the root has with all references written out, and find a reference
    loop.

    Returns the count, and the path of a schema that refers to itself (None if none does). A
    reference back to a schema counts one, because recursion ends with the value.
    """
    weights: dict[Path, int] = {}
    under_way: set[Path] = set()
    loop: Path | None = None
    stack = [(path, False) for path in reversed(edges)]
    while stack:
        path, done = stack.pop()
        if done:
            under_way.discard(path)
            weights[path] = 1 + sum(weights.get(target, 1) for target in edges[path])
        elif path in under_way:
            loop = path
        elif path not in weights:
            under_way.add(path)
            stack.append((path, True))
            stack.extend((target, False) for target in edges[path])
    return weights[()], loop
