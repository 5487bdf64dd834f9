"""Arguments of a tool, made of its schema: the same for the same schema."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

try:  # the parser of `re` has no public name; without it, patterns are not generated
    from re import _constants, _parser  # type: ignore[attr-defined]
except ImportError:
    _constants = _parser = None

MAX_DEPTH: Final = 24
_TEXT: Final = "a b&c=d"
_FORMATS: Final = {
    "date": "2026-02-03",
    "date-time": "2026-02-03T04:05:06Z",
    "time": "04:05:06Z",
    "duration": "P1D",
    "email": "a@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ip": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a?b=c",
    "url": "https://example.com/a?b=c",
    "uri-reference": "/a?b=c",
    "uuid": "8b3f2c1e-5b0a-4d6f-9c51-0f6f3f0d9a11",
    "byte": "YWJj",
    "json-pointer": "/a",
    "regex": "a+",
}
_COMPOSED: Final = ("anyOf", "oneOf")


class NoSampleError(Exception):
    """No value can be made for a schema."""


def samples(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield arguments: with all that is optional to some depths, then with what is required only."""
    for depth in (3, 1, 0):
        try:
            yield _Sampler(schema, depth).value(schema, 0)
        except (NoSampleError, RecursionError):
            continue


class _Sampler:
    """Makes values; optional members of objects only to some depth."""

    def __init__(self, root: Mapping[str, Any], optional_depth: int) -> None:
        self._root = root
        self._optional_depth = optional_depth

    def value(self, schema: Any, depth: int, number: int = 0) -> Any:
        """Return a value for a schema. Another `number` makes another value where one is possible."""
        if schema is False or depth > MAX_DEPTH:
            raise NoSampleError
        node = {} if schema is True else self._whole(schema, depth)
        if "const" in node:
            return node["const"]
        choices = [choice for choice in node.get("enum", ()) if choice is not None]
        if choices:
            return choices[number % len(choices)]
        make: dict[str, Callable[[Mapping[str, Any], int, int], Any]] = {
            "string": self._string,
            "integer": _integer,
            "number": _number,
            "boolean": lambda node, depth, number: number % 2 == 0,
            "array": self._list,
            "object": self._object,
            "null": lambda node, depth, number: None,
        }
        return make[_type(node)](node, depth, number)

    def _whole(self, schema: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
        """Return a schema with what it refers to, and with one of its alternatives."""
        if depth > MAX_DEPTH:
            raise NoSampleError
        own = {k: v for k, v in schema.items() if k not in ("$ref", "allOf", *_COMPOSED)}
        parts = list(schema.get("allOf", ()))
        if "$ref" in schema:
            parts.append(self._referred(schema["$ref"]))
        for keyword in _COMPOSED:
            branches = [b for b in schema.get(keyword, ()) if b not in ({"type": "null"}, False)]
            parts += branches[:1]
        for part in parts:
            if isinstance(part, Mapping):
                own = _joined(own, self._whole(part, depth + 1))
        return own

    def _referred(self, reference: str) -> Any:
        node: Any = self._root
        for step in reference.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
        return node

    def _object(self, node: Mapping[str, Any], depth: int, number: int) -> dict[str, Any]:
        properties = node.get("properties", {})
        required = node.get("required", ())
        further = node.get("additionalProperties", True)
        value = {}
        for name in dict.fromkeys((*properties, *required)):
            try:
                if name in required or depth < self._optional_depth:
                    value[name] = self.value(properties.get(name, further), depth + 1, number)
            except NoSampleError:
                if name in required:
                    raise
        missing = max(node.get("minProperties", 0), int(not properties and depth < 3)) - len(value)
        if further is not False:
            for count in range(missing):
                value[f"more{count}"] = self.value(further, depth + 1, number)
        return dict(islice(value.items(), node.get("maxProperties")))

    def _list(self, node: Mapping[str, Any], depth: int, number: int) -> list[Any]:
        before = [self.value(part, depth + 1) for part in node.get("prefixItems", ())]
        count = max(node.get("minItems", 0), min(2, node.get("maxItems", 2)))
        if depth > self._optional_depth + 3:
            count = node.get("minItems", 0)
        items = node.get("items", True)
        if items is False or count > 1000:
            return before
        return before + [self.value(items, depth + 1, n) for n in range(len(before), count)]

    def _string(self, node: Mapping[str, Any], depth: int, number: int) -> str:
        if "pattern" in node:
            return _matching(node, number)
        if "contentEncoding" in node:
            return "YWJj"
        text = _FORMATS.get(node.get("format", ""), _TEXT)
        text = f"{text}{number}" if number and text == _TEXT else text
        if text.endswith("06Z") and node.get("minLength", 0) > len(text):
            text = f"{text[:-1]}.".ljust(node["minLength"] - 1, "0") + "Z"
        text = text.ljust(min(node.get("minLength", 0), 100_000), "x")
        return text[: node["maxLength"]] if "maxLength" in node else text


def _type(node: Mapping[str, Any]) -> str:
    types = node.get("type", ())
    types = [types] if isinstance(types, str) else [name for name in types if name != "null"]
    if types:
        return str(types[0])
    if "properties" in node or isinstance(node.get("additionalProperties"), Mapping):
        return "object"
    return "array" if "items" in node else "null" if "null" in node.get("type", ()) else "string"


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return what both schemas demand, as far as values are made of it."""
    joined = {**second, **first}
    for keyword in ("minimum", "minLength", "minItems", "minProperties"):
        if keyword in first and keyword in second:
            joined[keyword] = max(first[keyword], second[keyword])
    if "enum" in first and "enum" in second:
        joined["enum"] = [v for v in first["enum"] if v in second["enum"]] or first["enum"]
    if "required" in first and "required" in second:
        joined["required"] = [*first["required"], *second["required"]]
    if "properties" in first and "properties" in second:
        members = {**second["properties"], **first["properties"]}
        for name in first["properties"].keys() & second["properties"].keys():
            members[name] = {"allOf": [first["properties"][name], second["properties"][name]]}
        joined["properties"] = members
    return joined


def _integer(node: Mapping[str, Any], depth: int, number: int) -> int:
    low = node.get("minimum", node.get("exclusiveMinimum", -1) + 1)
    step = node.get("multipleOf", 1)
    value = max(int(low) + (int(low) < low), 0 if "minimum" not in node else int(low)) + number
    high = node.get("maximum", node.get("exclusiveMaximum", value + 1) - 1)
    value = min(value, int(high // 1))
    return int(-(-value // step) * step) if step != 1 else value


def _number(node: Mapping[str, Any], depth: int, number: int) -> float | int:
    low, high = node.get("minimum"), node.get("maximum")
    low = node.get("exclusiveMinimum", low)
    high = node.get("exclusiveMaximum", high)
    if "multipleOf" in node:
        return _integer({**node, "multipleOf": node["multipleOf"]}, depth, number)
    if low is not None and high is not None:
        return float((low + high) / 2)
    if low is not None:
        return float(low) + 1.5 + number
    return 1.5 + number if high is None or high > 1.5 + number else float(high) - 0.5


def _matching(node: Mapping[str, Any], number: int) -> str:
    """Return a text for a pattern, which may be none: the validator of the arguments decides."""
    try:
        return _matched(node, _as_python(node["pattern"]))
    except (re.error, OverflowError, RecursionError):
        raise NoSampleError from None


def _matched(node: Mapping[str, Any], pattern: str) -> str:
    examples = [text for text in node.get("examples", ()) if isinstance(text, str)]
    for text in (*examples, _FORMATS.get(node.get("format", ""), ""), "abc", "1", _TEXT):
        if text and re.search(pattern, text) and _fits_length(node, text):
            return text
    if _parser is None:
        raise NoSampleError
    parsed = _parser.parse(pattern)
    for repeated in (1, node.get("minLength", 1), 3, 8, 16):
        text = _generated(parsed, repeated)
        if _fits_length(node, text):
            return text
    raise NoSampleError


def _as_python(pattern: str) -> str:
    """Write the classes of Unicode, which `re` does not have, as letters: wrong, but near."""
    written = ""
    inside = False
    for piece in re.split(r"(\\[pP]\{\^?[A-Za-z_]+\}|\\.|[\[\]])", pattern):
        if re.match(r"\\[pP]\{", piece):
            written += "a-zA-Z0-9" if inside else "[a-zA-Z0-9]"
        else:
            inside = piece == "[" or (inside and piece != "]")
            written += piece
    return written


def _fits_length(node: Mapping[str, Any], text: str) -> bool:
    return bool(node.get("minLength", 0) <= len(text) <= node.get("maxLength", len(text)))


def _generated(parsed: Any, repeated: int) -> str:
    names = _constants
    text = ""
    for operation, value in parsed:
        if operation is names.LITERAL:
            text += chr(value)
        elif operation is names.NOT_LITERAL:
            text += "b" if value == ord("a") else "a"
        elif operation is names.ANY:
            text += "a"
        elif operation is names.IN:
            text += _character(value)
        elif operation is names.BRANCH:
            text += _generated(value[1][0], repeated)
        elif operation is names.SUBPATTERN:
            text += _generated(value[-1], repeated)
        elif operation in (names.MAX_REPEAT, names.MIN_REPEAT, names.POSSESSIVE_REPEAT):
            low, high, inner = value
            count = max(low, min(repeated, 100_000 if high is names.MAXREPEAT else int(high)))
            text += _generated(inner, repeated) * min(count, 10_000)
    return text


def _character(members: Any) -> str:
    for candidate in "aA1-_. /":
        if re.fullmatch(_class(members), candidate):
            return candidate
    kind, value = members[0]
    if kind is _constants.RANGE:
        return chr(value[0])
    return chr(value) if kind is _constants.LITERAL else "a"


def _class(members: Any) -> str:
    """Write a class of characters as the parser read it."""
    written = ""
    categories = {
        _constants.CATEGORY_DIGIT: r"\d",
        _constants.CATEGORY_NOT_DIGIT: r"\D",
        _constants.CATEGORY_SPACE: r"\s",
        _constants.CATEGORY_NOT_SPACE: r"\S",
        _constants.CATEGORY_WORD: r"\w",
        _constants.CATEGORY_NOT_WORD: r"\W",
    }
    for kind, value in members:
        if kind is _constants.NEGATE:
            written = "^" + written
        elif kind is _constants.RANGE:
            written += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        elif kind is _constants.CATEGORY:
            written += categories[value]
        else:
            written += re.escape(chr(value))
    return f"[{written}]"
