r"""Taking out of a payload what must never be written, before it is handed to the writer.

Two sources say what: the tool's JSON Schema (`writeOnly: true`, `format: "password"`) and paths
that an operator lists. A path names properties from the root of the value:

    password            the property "password"
    user.card.number    nested properties
    users[*].token      the property of every item of an array
    headers.*           every property of an object
    ["a.b"].c           a name that holds dots, brackets or stars, as a JSON string in brackets

Where a schema leaves several readings (`anyOf`, `patternProperties`, …) each of them counts, and
what cannot be followed (a `$ref` that leads nowhere, a schema too large) is redacted altogether: too
much is the safe side.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

REDACTED = "[redacted]"

_MOST_NODES = 5_000
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_STEP = re.compile(
    r"""\.?(?P<name>[^.\[\]*"]+)|\.?(?P<any>\*)|(?P<items>\[\*\])|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
)


class BadPathError(ValueError):
    """A redaction path cannot be read; the message says which and where."""


@dataclass(slots=True, eq=False)
class _Rule:
    """What to do with one place in a value. Rules may form circles, as schemas do."""

    secret: bool = False
    properties: dict[str, "_Rule"] = field(default_factory=dict)
    other_properties: list["_Rule"] = field(default_factory=list)
    any_property: list["_Rule"] = field(default_factory=list)
    items: list["_Rule"] = field(default_factory=list)
    also: list["_Rule"] = field(default_factory=list)

    def children(self) -> Iterable["_Rule"]:
        yield from self.properties.values()
        yield from self.other_properties
        yield from self.any_property
        yield from self.items
        yield from self.also


@dataclass(frozen=True, slots=True)
class Redactor:
    """Redacts values of one shape. Make it with `compile`, once per tool version."""

    _rules: tuple[_Rule, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is ever redacted."""
        return not self._rules

    def redact(self, value: Any) -> Any:
        """`value` with "[redacted]" where something was secret. `value` itself is not changed;
        what holds nothing secret is returned as it is.
        """
        return _apply(self._rules, value) if self._rules else value


NOTHING = Redactor()


def compile(schema: Any = None, extra_paths: Sequence[str] = ()) -> Redactor:
    """The redactor for values of `schema` (may be None or boolean), and of an operator's paths.

    Raises BadPathError.
    """
    rules = [_SchemaReader(schema).rule()]
    rules += [_path_rule(path) for path in extra_paths]
    return Redactor(tuple(rule for rule in rules if _holds_a_secret(rule)))


def _apply(rules: Sequence[_Rule], value: Any) -> Any:
    rules = _with_alternatives(rules)
    if any(rule.secret for rule in rules):
        return REDACTED
    if isinstance(value, Mapping):
        return _apply_to_object(rules, value)
    if isinstance(value, list | tuple):
        items = [rule for each in rules for rule in each.items]
        return [_apply(items, item) for item in value] if items else value
    return value


def _apply_to_object(rules: Sequence[_Rule], value: Mapping[str, Any]) -> Any:
    changed: dict[str, Any] = {}
    for name, item in value.items():
        found = [rule for each in rules for rule in _of_property(each, name)]
        if found and (new := _apply(found, item)) is not item:
            changed[name] = new
    return {**value, **changed} if changed else value


def _of_property(rule: _Rule, name: str) -> Iterable[_Rule]:
    yield from rule.any_property
    named = rule.properties.get(name)
    if named is not None:
        yield named
    else:
        yield from rule.other_properties


def _with_alternatives(rules: Sequence[_Rule]) -> list[_Rule]:
    """`rules` and all that they are made of, each once."""
    found: dict[int, _Rule] = {}
    waiting = list(rules)
    while waiting:
        rule = waiting.pop()
        if id(rule) not in found:
            found[id(rule)] = rule
            waiting += rule.also
    return list(found.values())


def _holds_a_secret(root: _Rule) -> bool:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        rule = waiting.pop()
        if rule.secret:
            return True
        if id(rule) not in seen:
            seen.add(id(rule))
            waiting += rule.children()
    return False


def _path_rule(path: str) -> _Rule:
    root = rule = _Rule()
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (at == 0 and path[0] == "."):
            raise BadPathError(f"{path!r} is no redaction path: unreadable from character {at + 1}")
        following = _Rule()
        if match["items"]:
            rule.items.append(following)
        elif match["any"]:
            rule.any_property.append(following)
        else:
            rule.properties[match["name"] or json.loads(match["quoted"])] = following
        rule, at = following, match.end()
    if rule is root:
        raise BadPathError("a redaction path names at least one property")
    rule.secret = True
    return root


class _SchemaReader:
    """Reads the rules out of one schema, every subschema once."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._rules: dict[int, _Rule] = {}
        self._waiting: list[tuple[_Rule, Mapping[str, Any]]] = []

    def rule(self) -> _Rule:
        root = self._of(self._schema)
        while self._waiting:
            if len(self._rules) > _MOST_NODES:
                return _Rule(secret=True)
            self._read(*self._waiting.pop())
        return root

    def _of(self, schema: Any) -> _Rule:
        if not isinstance(schema, Mapping):  # true, false, or no schema at all
            return _Rule()
        known = self._rules.get(id(schema))
        if known is None:
            known = self._rules[id(schema)] = _Rule()
            self._waiting.append((known, schema))
        return known

    def _read(self, rule: _Rule, schema: Mapping[str, Any]) -> None:
        rule.secret = schema.get("writeOnly") is True or schema.get("format") == "password"
        for name, each in _mapping(schema.get("properties")).items():
            rule.properties[name] = self._of(each)
        for each in _mapping(schema.get("patternProperties")).values():
            rule.any_property.append(self._of(each))
        for key in ("additionalProperties", "unevaluatedProperties"):
            rule.other_properties.append(self._of(schema.get(key)))
        for key in ("items", "additionalItems", "prefixItems", "unevaluatedItems", "contains"):
            rule.items += [self._of(each) for each in _list(schema.get(key))]
        self._read_alternatives(rule, schema)

    def _read_alternatives(self, rule: _Rule, schema: Mapping[str, Any]) -> None:
        for key in _ALTERNATIVES:
            rule.also += [self._of(each) for each in _list(schema.get(key))]
        for key in ("dependentSchemas", "dependencies"):
            rule.also += [self._of(each) for each in _mapping(schema.get(key)).values()]
        for key in ("if", "then", "else"):
            rule.also.append(self._of(schema.get(key)))
        for key in ("$ref", "$dynamicRef"):
            if key in schema:
                rule.also.append(self._target(schema[key]))

    def _target(self, reference: Any) -> _Rule:
        found = _resolve(self._schema, reference)
        return _Rule(secret=True) if found is None else self._of(found)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _resolve(root: Any, reference: Any) -> Any:
    """The subschema that a local `$ref` points to; None if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        return _anchored(root, pointer)
    node = root
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, Mapping) and name in node:
            node = node[name]
        else:
            return None
    return node


def _anchored(root: Any, name: str) -> Any:
    waiting = [root]
    for _ in range(_MOST_NODES):
        if not waiting:
            return None
        node = waiting.pop()
        if isinstance(node, Mapping):
            if name in (node.get("$anchor"), node.get("$dynamicAnchor")):
                return node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return None
