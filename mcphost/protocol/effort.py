"""Limits on the work that a message may cause: the cost of explaining a refusal and of checking a
schema.

The threat: a caller sends bodies that are refused, and a tenant publishes schemas that are dear to check,
so that a request costs many times the CPU that its size suggests, while the process serves all tenants.
Without the weight of each keyword below, one of its kind does so, within the limits on the size of a body.

The rule (docs/design/bodies.md, "What a refusal may cost"): above 64 KiB, refusing a body costs at
most twice parsing it, plus one validation against its schema. Two things follow. A refusal is
explained only as far as the explanation is cheap; whether a value is valid never depends on its
size. And a schema that costs more to check than six plain ones accepts arguments that are smaller
in proportion.

The costs are those of `jsonschema_rs`, measured against parsing the smallest values of the same
kind. It caches the results of references, so recursion by itself is cheap.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from mcphost.protocol.subschemas import Document, Path, Subschema, references, walk

EXPLAINED_BYTES: Final = 64 * 1024
"""Larger JSON that does not fit is refused without saying where."""
EXPLAINED_VALUES: Final = 4_000
"""How many values, times the alternatives that each may be compared with, are checked to list all
errors."""

FREE: Final = 6.0
"""The cost of a plain schema with five alternatives. Up to this factor the arguments may fill the
body."""
MAX_VISITED: Final = 20_000
"""How many subschemas, with references written out, are visited; larger schemas get the highest
cost."""
_DEAREST: Final = 1_000_000.0

_UNIQUE: Final = 3.0
_UNEVALUATED: Final = 2.0
_PATTERN_PROPERTY: Final = 0.25
_COMPARED: Final = 2.0
_MIXED_OPTION: Final = 0.5
_WHOLE_OPTION: Final = 12.0
_NUMBER: Final = 60.0
_DEPENDENCY: Final = 0.5
_WHOLE_MULTIPLE: Final = 60.0
_FRACTIONAL_MULTIPLE: Final = 1_500.0

_PATTERN: Final = 2.0
_PATTERN_STATE: Final = 20.0
_STATES: Final = 256
_STATES_BESIDE_LOOPS: Final = 16
_CHOICES: Final = 64
"""How many classes, choices and loops a pattern without counted repetitions may have."""
_UNICODE_CLASS: Final = 8
_TOKEN: Final = re.compile(
    r"\\[pP](?:\{[^}]*\}|.)|\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+)(,?)(\d*)\}|.", re.DOTALL
)

_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_DEPENDENCIES: Final = ("dependentRequired", "dependencies")
_NUMBERS: Final = frozenset({int, float})

_HOLDERS: Final = frozenset({dict, list})
_NEAR: Final = 64

_OTHER_PROPERTY: Final = "\0other"
_NAMES: Final = "\0names"
_ITEM: Final = "\0item"
_MANY: Final = frozenset({_OTHER_PROPERTY, _NAMES, _ITEM})
_OF_ITEMS: Final = frozenset(
    {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"}
)
_OF_OTHERS: Final = frozenset({"additionalProperties", "unevaluatedProperties"})


class ValidationCost(NamedTuple):
    """The cost of checking a value against a schema.

    `factor` is the cost for the most expensive value, as a multiple of the time to parse it.
    `alternatives` is the largest number of subschemas that apply to the same value.
    """

    factor: float
    alternatives: int

    def limit(self, body_limit: int) -> int:
        """How many bytes of JSON a value may have, if a body may have `body_limit`."""
        return body_limit if self.factor <= FREE else max(1, int(body_limit * FREE / self.factor))


def is_explained(value: Any) -> bool:
    """Whether to say where a value does not fit. Called only for refused values, which must be
    JSON."""
    # Writing numbers takes as long as reading them did, so values that are clearly too long are not
    # written: the longest array or object among the first values shows it.
    longest = 0
    near = [value]
    for node in islice(near, _NEAR):
        if type(node) in _HOLDERS:
            longest = max(longest, len(node))
            if len(near) + len(node) <= _NEAR:
                near += node.values() if type(node) is dict else node
    return longest <= EXPLAINED_BYTES // 2 and len(orjson.dumps(value)) <= EXPLAINED_BYTES


def holds_at_most(value: Any, count: int) -> bool:
    """Whether a JSON value consists of at most `count` values, not counting keys."""
    level, total = [value] if type(value) in _HOLDERS else [], 1
    while level and total <= count:
        parts = [holder.values() if type(holder) is dict else holder for holder in level if holder]
        total += sum(map(len, parts))
        if total <= count:
            level = [child for part in parts for child in part if type(child) in _HOLDERS]
    return total <= count


def effort_of(schema: Any) -> ValidationCost:
    """Return the cost of a JSON Schema, which must have passed `protocol.schemas.check_schema`."""
    if not isinstance(schema, Mapping):
        return ValidationCost(1.0, 1)
    weighing = _Weighing(schema)
    alternatives = weighing.weigh(_unit_cost, MAX_VISITED)
    return ValidationCost(weighing.weigh(_all, _DEAREST), int(alternatives))


def pattern_effort(pattern: str) -> float:
    """Return the cost of a regular expression per character, as a multiple of parsing it.

    Patterns run in linear time, but the constant grows with the size that counted repetitions
    expand to.
    """
    sizes: list[list[int]] = [[]]
    loops = False
    choices = 0
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        choices += text in "|?*+." or text[0] in "[\\"
        if text == "(":
            sizes.append([])
        elif text == ")" and len(sizes) > 1:
            group = sum(sizes.pop())
            sizes[-1].append(group)
        elif token[1] is not None:
            loops = loops or (bool(token[2]) and not token[3])
            if sizes[-1]:
                sizes[-1][-1] *= max(1, int(token[3] or token[1]))
        elif text in "*+":
            loops = True
        elif text not in "?|^$":
            sizes[-1].append(_UNICODE_CLASS if text[:2] in (r"\p", r"\P") else 1)
    size = sum(map(sum, sizes))
    written_out = any(token[1] is not None for token in _TOKEN.finditer(pattern))
    if not written_out and loops and choices > _CHOICES:
        return min(_DEAREST, _PATTERN_STATE * choices)
    bound = _STATES_BESIDE_LOOPS if loops else _STATES
    if not written_out or size <= bound or (pattern.startswith("^") and not loops):
        return _PATTERN
    return min(_DEAREST, _PATTERN_STATE * size)


Cost = Callable[[Mapping[str, Any], bool], float]
"""The cost of one subschema, by its keywords and whether it may apply to many parts of one value."""


class _Weighing:
    """One schema, walked once, whose cost can be computed in several ways."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        subschemas = tuple(walk(schema))
        self._document = Document(subschemas)
        self._by_path = {subschema.path: subschema for subschema in subschemas}
        self._children: dict[Path, list[Subschema]] = {path: [] for path in self._by_path}
        for subschema in subschemas[1:]:
            self._children[subschema.parent].append(subschema)
        self._cost: Cost = _unit_cost
        self._sums: dict[tuple[Path, bool], float] = {}
        self._open: set[Path] = set()
        self._loops = False
        self._visited = 0

    def weigh(self, cost: Cost, limit: float) -> float:
        """Return the largest sum of the costs of all subschemas that apply to the same part of a
        value."""
        effort = self._weigh(cost, repeated=False)
        if self._loops:  # then a value may repeat any part many times
            effort = self._weigh(cost, repeated=True)
        return limit if self._visited > MAX_VISITED else min(limit, max(1.0, effort))

    def _weigh(self, cost: Cost, *, repeated: bool) -> float:
        self._cost = cost
        self._sums.clear()
        self._visited = 0
        return self._sum((), repeated=repeated)

    def _sum(self, path: Path, *, repeated: bool) -> float:
        cached = self._sums.get((path, repeated))
        if cached is not None:
            return cached
        if path in self._open:  # results at references are cached: going back is free
            self._loops = True
            return 1.0
        self._open.add(path)
        subschemas = list(self._subschemas_at(path))
        self._visited += len(subschemas)
        total = sum(self._cost(subschema.keywords, repeated) for subschema in subschemas)
        for name, schemas in self._parts(subschemas).items():
            again = repeated or name in _MANY
            total = max(total, sum(self._sum(schema.path, repeated=again) for schema in schemas))
        self._open.discard(path)
        self._sums[path, repeated] = total
        return total

    def _subschemas_at(self, path: Path) -> Iterator[Subschema]:
        """Yield all subschemas that apply to the same value, each as often as it applies."""
        waiting = [(path, frozenset[Path]())]
        for at, above in waiting:
            subschema = self._by_path[at]
            yield subschema
            if at in above or len(waiting) > MAX_VISITED:
                continue
            above |= {at}
            waiting += [(child.path, above) for child in self._children[at] if child.in_place]
            targets = (self._document.find(reference) for _, reference in references(subschema))
            waiting += [(target, above) for target in targets if target is not None]

    def _parts(self, subschemas: Iterable[Subschema]) -> dict[str, list[Subschema]]:
        """Group the subschemas of the parts of a value: of a property, any other property, a name,
        an item."""
        named: dict[str, list[Subschema]] = {_OTHER_PROPERTY: []}
        wildcards_of_subschemas: list[tuple[Subschema, list[Subschema]]] = []
        for subschema in subschemas:
            wildcards: list[Subschema] = []
            for child in self._children[subschema.path]:
                keyword = child.path[len(subschema.path)]
                if keyword == "properties":
                    named.setdefault(child.path[-1], []).append(child)
                elif keyword == "patternProperties" or keyword in _OF_OTHERS:
                    wildcards.append(child)
                elif keyword == "propertyNames":
                    named.setdefault(_NAMES, []).append(child)
                elif keyword in _OF_ITEMS:
                    named.setdefault(_ITEM, []).append(child)
            wildcards_of_subschemas.append((subschema, wildcards))
        for subschema, wildcards in wildcards_of_subschemas:
            own = subschema.keywords.get("properties", {})
            for name, schemas in named.items():
                if name not in (_NAMES, _ITEM):
                    schemas += [
                        wildcard
                        for wildcard in wildcards
                        if wildcard.path[len(subschema.path)] not in _OF_OTHERS or name not in own
                    ]
        return named


def _unit_cost(keywords: Mapping[str, Any], repeated: bool) -> float:
    return 1.0


def _all(keywords: Mapping[str, Any], repeated: bool) -> float:
    # Paid for each character, member or item, so that one long value is expensive.
    cost = _UNIQUE if keywords.get("uniqueItems") is True else 0.0
    cost += _UNEVALUATED * sum(name.startswith("unevaluated") for name in keywords)
    pattern = keywords.get("pattern")
    if isinstance(pattern, str):
        cost += pattern_effort(pattern)
    names = keywords.get("patternProperties")
    if isinstance(names, Mapping):
        cost += sum(
            _PATTERN_PROPERTY + pattern_effort(property_pattern) - _PATTERN
            for property_pattern in names
        )
    return 1.0 + cost + _for_each(keywords) if repeated else cost


def _for_each(keywords: Mapping[str, Any]) -> float:
    """The cost that is paid for each value, so that only many values are expensive."""
    cost = 0.0
    options = keywords.get("enum")
    if isinstance(options, list) and all(type(option) is int for option in options):
        cost += _WHOLE_OPTION * len(options)
    elif isinstance(options, list):
        # Options of one simple type are looked up, others are compared one by one. A number with a
        # fraction is compared with whole ones one by one, too.
        cost += sum(map(_compared, options))
        if len({type(option) for option in options}) > 1:
            cost += _MIXED_OPTION * sum(isinstance(option, str) for option in options)
    if "const" in keywords:
        cost += _compared(keywords["const"])
    cost += _NUMBER * sum(isinstance(keywords.get(bound), float) for bound in _BOUNDS)
    for keyword in _DEPENDENCIES:  # dependencies that are schemas are counted as subschemas
        names = keywords.get(keyword)
        if isinstance(names, Mapping):
            cost += _DEPENDENCY * sum(isinstance(value, list) for value in names.values())
    step = keywords.get("multipleOf")
    if step is not None:
        cost += _WHOLE_MULTIPLE if step == int(step) else _FRACTIONAL_MULTIPLE
    return cost


def _compared(value: Any) -> float:
    """The cost of comparing one value with another. Numbers are compared digit by digit."""
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return _COMPARED + max((_compared(part) for part in parts), default=0.0)
    return _NUMBER if type(value) in _NUMBERS else 0.0
