"""Plain scalars of YAML documents, with their texts: where OpenAPI has a text, `1.10` is not the number 1.1.

Numbers and words such as `true` are read as YAML has them, and only the document says that a text is
meant: `type: string` beside an `enum`, the names in `required`, the default of a server's variable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MAX_BRANCHES: Final = 100
"""How many schemas of a composition are looked at for their type."""
_TEXTS: Final = frozenset(
    {
        *("openapi", "swagger", "version", "title", "summary", "description"),
        *("in", "style", "collectionFormat", "format", "pattern", "url", "host", "basePath"),
        *("scheme", "type", "contentType", "contentMediaType", "contentEncoding", "$ref", "$id"),
        *("$anchor", "$comment"),
    }
)
"""Fields of OpenAPI and keywords of schemas whose value is a text."""
_NAME: Final = frozenset({"name", "operationId"})
_NAMES: Final = frozenset({"required", "tags", "consumes", "produces", "schemes"})
"""Those whose value is a name, and those with a list of names, which may be `null`."""
_VALUES: Final = frozenset({"default", "example", "examples", "enum", "const"})
"""Keywords with values of the schema that has them."""
_NAMED: Final = frozenset(
    {
        *("properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "paths"),
        *("schemas", "responses", "requestBodies", "headers", "securitySchemes", "links"),
        *("callbacks", "pathItems", "securityDefinitions", "content", "encoding", "webhooks"),
        *("mediaTypes",),
    }
)
"""Keywords with an object whose members have names of the document's own."""
_INNER: Final = {
    "names": "",
    "values": "values",
    "variables": "texts",
    "dependentRequired": "words",
}
"""What the members of an object with names as keys are."""
_COMPOSED: Final = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class PlainScalar:
    """A scalar that is no text in YAML: its value, and its text as it is written."""

    value: Any
    text: str

    @property
    def is_null(self) -> bool:
        """Whether it is null, which the value of `.inf` is, too, for JSON has no other."""
        return self.text.lower() in ("", "~", "null")


def resolved(root: Any) -> Any:
    """Return a document without plain scalars: each is its text or its value. Changes the document."""
    return _Resolver(root).result()


class _Resolver:
    """Goes through a document from the top. Roles say what an object or a list is: `names` an object
    with names as keys, `variables` and
    `dependentRequired` those of the field with this name, `texts` and `words` something whose scalars are
    texts (`words` even if it is null), `values` a value that is left as it is."""

    def __init__(self, root: Any) -> None:
        self._document = root
        self._root = [root]
        self._visited: set[int] = set()
        self._waiting: list[tuple[Any, str]] = []

    def result(self) -> Any:
        self._resolve_list(self._root, "")
        while self._waiting:
            node, role = self._waiting.pop()
            if isinstance(node, dict):
                self._resolve_object(node, role)
            else:
                self._resolve_list(node, role)
        return self._root[0]

    def _member(self, value: Any, role: str) -> Any:
        """Return what stands in the place of a member. An object or a list is resolved later, once: an
        alias of YAML is the same object again."""
        if isinstance(value, PlainScalar):
            is_text = role == "texts" and not value.is_null
            return value.text if is_text or (role == "words" and value.text) else value.value
        if isinstance(value, dict | list) and id(value) not in self._visited:
            self._visited.add(id(value))
            self._waiting.append((value, role))
        return value

    def _resolve_list(self, node: list[Any], role: str) -> None:
        for at, value in enumerate(node):
            node[at] = self._member(value, role)

    def _resolve_object(self, node: dict[str, Any], role: str) -> None:
        # Before its members are resolved: `type` is a text whatever stands there.
        of_text = _VALUES.intersection(node) and (
            self._is_text(node) or self._is_text(node.get("items"))
        )
        for key, value in node.items():
            if role in _INNER:
                inner = _INNER[role]
            elif role in ("texts", "words"):  # a server's variable; elsewhere there are no objects
                inner = "texts" if key in _VALUES else "values"
            else:
                inner = self._role(key, value, bool(of_text))
            node[key] = self._member(value, inner)

    @staticmethod
    def _role(key: str, value: Any, of_text: bool) -> str:
        if key in _VALUES:
            return "texts" if of_text and not isinstance(value, Mapping) else "values"
        if key in _NAMED or (key == "parameters" and isinstance(value, Mapping)):
            return "names"
        if key in ("variables", "dependentRequired"):
            return key
        if key.startswith("x-"):
            return "values"
        if key in _NAME or (key in _NAMES and isinstance(value, list)):
            return "words"  # but `required: true` of a parameter is none
        return "texts" if key in _TEXTS else ""

    def _is_text(self, schema: Any) -> bool:
        """Whether the values of a schema are texts, and nothing else but null."""
        types: set[str] = set()
        waiting: list[Any] = [schema]
        for _ in range(MAX_BRANCHES):
            if not waiting:
                break
            node = waiting.pop()
            if not isinstance(node, Mapping):
                continue
            own = node.get("type")
            types.update(map(str, own) if isinstance(own, list) else [str(own)] if own else [])
            waiting.append(self._referred(node.get("$ref")))
            for keyword in _COMPOSED:
                branches = node.get(keyword)
                waiting += branches if isinstance(branches, list) else []
        return types in ({"string"}, {"string", "null"})

    def _referred(self, reference: Any) -> Any:
        """Return what a reference within the document leads to; None if it leads elsewhere."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        node = self._document
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, Mapping) else None
        return node
