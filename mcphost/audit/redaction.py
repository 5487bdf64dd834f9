r"""Redact payloads: remove what must never be written, before they are handed to the writer.

Two sources define it: the tool's JSON Schema (`writeOnly: true`, `format: "password"`) and paths
that an operator lists. A path names properties from the root of the value:

    password            the property "password"
    user.card.number    nested properties
    users[*].token      the property of every item of an array
    headers.*           every property of an object
    ["a.b"].c           a name with dots, brackets or stars, as a JSON string in brackets

All alternatives of a schema (`anyOf`, `patternProperties`, …) apply, and a value whose schema
cannot be read (a `$ref` that leads nowhere, a schema too large) is redacted completely: it is safer
to redact too much.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

REDACTED = "[redacted]"

_MAX_NODES = 5_000
_OTHER_PROPERTIES = ("additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "additionalItems", "prefixItems", "unevaluatedItems", "contains")
_ALTERNATIVES = ("allOf", "anyOf", "oneOf", "if", "then", "else")
_DEPENDENT = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef")
_STEP = re.compile(
    r"""\.?(?P<name>[^.\[\]*"]+)|\.?(?P<any>\*)|(?P<items>\[\*\])|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
)


class BadPathError(ValueError):
    """A redaction path cannot be read; the message says which and where."""


@dataclass(slots=True, eq=False)
class _Rule:
    """The rule for one place in a value. Rules may form cycles, as schemas do."""

    secret: bool = False
    properties: "dict[str, list[_Rule]]" = field(default_factory=dict)
    other_properties: "list[_Rule]" = field(default_factory=list)
    any_property: "list[_Rule]" = field(default_factory=list)
    items: "list[_Rule]" = field(default_factory=list)
    also: "list[_Rule]" = field(default_factory=list)

    def branches(self) -> "Iterable[list[_Rule]]":
        yield from self.properties.values()
        yield from (self.other_properties, self.any_property, self.items, self.also)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Redacts values of one schema. Make it with `compile`, once per tool version.

    Without `rules` nothing is ever redacted.
    """

    rules: tuple[_Rule, ...] = ()

    def redact(self, value: Any) -> Any:
        """Return `value` with "[redacted]" in place of secrets. `value` itself is not changed; if
        it has no secrets it is returned as it is.
        """
        return _apply(self.rules, value) if self.rules else value


NOTHING = Redactor()


def compile(schema: Any = None, extra_paths: Sequence[str] = ()) -> Redactor:
    """Make the redactor for `schema` (may be None or boolean) and an operator's paths.

    Raises BadPathError.
    """
    rules = [*_SchemaReader(schema).rules(), *(_path_rule(path) for path in extra_paths)]
    return Redactor(tuple(rules))


def _apply(rules: Sequence[_Rule], value: Any) -> Any:
    # The alternatives of the rules, and recursively theirs, apply too: each once.
    applied_rules: dict[int, _Rule] = {}
    waiting = list(rules)
    while waiting:
        rule = waiting.pop()
        if id(rule) not in applied_rules:
            applied_rules[id(rule)] = rule
            waiting += rule.also
    if any(rule.secret for rule in applied_rules.values()):
        return REDACTED
    if isinstance(value, Mapping):
        changed: dict[str, Any] = {}
        for name, item in value.items():
            property_rules = []
            for rule in applied_rules.values():
                property_rules += rule.any_property
                property_rules += rule.properties.get(name, rule.other_properties)
            if property_rules and (new := _apply(property_rules, item)) is not item:
                changed[name] = new
        return {**value, **changed} if changed else value
    if isinstance(value, list | tuple):
        items = [item_rule for rule in applied_rules.values() for item_rule in rule.items]
        return [_apply(items, item) for item in value] if items else value
    return value


def _prune(rules: Sequence[_Rule]) -> set[int]:
    """Remove branches that lead to no secret; return the ids of the rules that lead to one."""
    parents: dict[int, list[_Rule]] = {}
    for rule in rules:
        for branch in rule.branches():
            for child in branch:
                parents.setdefault(id(child), []).append(rule)
    waiting = [rule for rule in rules if rule.secret]
    kept = set(map(id, waiting))
    while waiting:
        for parent in parents.get(id(waiting.pop()), ()):
            if id(parent) not in kept:
                kept.add(id(parent))
                waiting.append(parent)
    for rule in rules:
        for branch in rule.branches():
            branch[:] = [child for child in branch if id(child) in kept]
    return kept


def _path_rule(path: str) -> _Rule:
    root = rule = _Rule()
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (at == 0 and path[0] == "."):
            raise BadPathError(
                f"{path!r} is not a redaction path: syntax error at character {at + 1}"
            )
        following = _Rule()
        if match["items"]:
            rule.items.append(following)
        elif match["any"]:
            rule.any_property.append(following)
        else:
            rule.properties[match["name"] or json.loads(match["quoted"])] = [following]
        rule, at = following, match.end()
    if rule is root:
        raise BadPathError("a redaction path must name at least one property")
    rule.secret = True
    return root


class _SchemaReader:
    """Reads the rules out of one schema, every subschema once."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._rules_by_id: dict[int, _Rule] = {}
        self._nowhere = _Rule(secret=True)
        self._waiting: list[tuple[_Rule, Mapping[str, Any]]] = []

    def rules(self) -> list[_Rule]:
        """The rules of the root, if they lead to a secret."""
        roots = self._rules_of(self._schema)
        while self._waiting:
            if len(self._rules_by_id) > _MAX_NODES:
                return [_Rule(secret=True)]
            self._read_schema(*self._waiting.pop())
        kept = _prune([*self._rules_by_id.values(), self._nowhere])
        return [rule for rule in roots if id(rule) in kept]

    def _rules_of(self, *schemas: Any) -> list[_Rule]:
        """The rules of those values that are object schemas."""
        rules = []
        for schema in schemas:
            if isinstance(schema, Mapping):
                rule = self._rules_by_id.get(id(schema))
                if rule is None:
                    rule = self._rules_by_id[id(schema)] = _Rule()
                    self._waiting.append((rule, schema))
                rules.append(rule)
        return rules

    def _read_schema(self, rule: _Rule, schema: Mapping[str, Any]) -> None:
        rule.secret = schema.get("writeOnly") is True or schema.get("format") == "password"
        for name, subschema in _mapping(schema.get("properties")).items():
            rule.properties[name] = self._rules_of(subschema)
        rule.any_property = self._rules_of(*_mapping(schema.get("patternProperties")).values())
        rule.other_properties = self._rules_of(*map(schema.get, _OTHER_PROPERTIES))
        for key in _ITEMS:
            rule.items += self._rules_of(*_list(schema.get(key)))
        for key in _ALTERNATIVES:
            rule.also += self._rules_of(*_list(schema.get(key)))
        for key in _DEPENDENT:
            rule.also += self._rules_of(*_mapping(schema.get(key)).values())
        for key in _REFERENCES:
            if key in schema:
                target = _resolve(self._schema, schema[key])
                rule.also += [self._nowhere] if target is None else self._rules_of(target)


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
    for _ in range(_MAX_NODES):
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
