"""Values in parameters, fields, headers and paths, written as OpenAPI says (3.1, "Style Values").

A value that a style does not define raises ToolError: it is never sent in another form. `deepObject` is
defined for one level only; deeper ones, and lists, are written as most services read them:
`a[b][0]=x`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import orjson

from mcphost.egress.messages import EncodedText
from mcphost.egress.secret_values import Text
from mcphost.kinds.http.configs import (
    FieldConfig,
    HeaderConfig,
    PartConfig,
    PathConfig,
    is_json_type,
)
from mcphost.kinds.http.templates import as_text
from mcphost.sdk import ToolError

_SEPARATOR: Final = re.compile(r"[\s.]")
_BETWEEN: Final = {
    "form": ",",
    "spaceDelimited": " ",
    "pipeDelimited": "|",
    "deepObject": ",",
}
# Not `&`, `+` and `#`, which mean something in a query, nor `;`, at which some services divide it: no
# caller may add a parameter.
_RESERVED: Final = ":/?@!$'()*,="
_RESERVED_IN_PATHS: Final = ":@!$'()*&+"
"""Not `,`, `;`, `=` and `.`, which are between the values of some styles, nor what ends a segment."""
_ENCODED: Final = re.compile(r"(%[0-9A-Fa-f]{2})")
_IN_COOKIES: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"
"""The characters of a cookie's value (RFC 6265, section 4.1.1) that are not percent-encoded in it, beside
letters and digits. A percent sign is encoded, so that the service gets back what was written."""


class FieldNames:
    """The names of all fields of a request. No caller may choose one of them as that of a member."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[tuple[str, ...], set[str]] = {}
        self._begun: dict[tuple[str, ...], set[str]] = {}
        for name in names:
            steps = _steps(name)
            self._names.setdefault(steps, set()).add(name)
            for count in range(1, len(steps) + 1):
                self._begun.setdefault(steps[:count], set()).add(name)
        self._longest = max(map(len, self._names), default=0)

    def check(self, sent: str, own: str, member: str) -> str:
        """Return the name that a member of an object is sent under. `own` is the name of the object's
        field, which is not sent beside its members. Raises ToolError."""
        steps = _steps(sent)
        clashes = set(self._begun.get(steps, ()))
        for count in range(1, min(len(steps), self._longest) + 1):
            clashes |= self._names.get(steps[:count], set())
        clashes.discard(own)
        if clashes:
            raise ToolError(
                f"The request has the field {min(clashes)!r} itself: leave out {member[:100]!r}"
            )
        return sent


def _steps(name: str) -> tuple[str, ...]:
    """Return what services may read in the name of a field: `a[b]` is a part of `a`, many know one case,
    and PHP ends a name at NUL, and reads dots and spaces as underscores."""
    plain = name.partition("\0")[0].strip().casefold().replace("]", "")
    return tuple(_SEPARATOR.sub("_", step) for step in plain.split("["))


class FieldWriter:
    """Writes the values of a query or of a form. `is_encoded`: whether they are percent-encoded later,
    as those of a form with files are not."""

    def __init__(self, names: FieldNames, *, is_encoded: bool) -> None:
        self._names = names
        self._is_encoded = is_encoded

    def pairs(self, field: FieldConfig, value: Any) -> Iterator[tuple[str, Text]]:
        """Yield the names and texts of a field's value. Raises ToolError."""
        if field.style == "part":
            yield from ((field.name, self._text(field, text)) for text in part_texts(field, value))
        elif field.style == "json":
            yield field.name, self._text(field, orjson.dumps(value).decode())
        elif field.style == "deepObject" and isinstance(value, Mapping | list):
            for name, scalar in _deep(field.name, value):
                member = name.removeprefix(field.name)
                yield self._names.check(name, field.name, member), self._text(field, scalar)
        elif isinstance(value, Mapping):
            yield from self._members(field, value)
        elif isinstance(value, list):
            texts = list(element_texts(field.name, value))
            if field.explode:
                yield from ((field.name, self._text(field, text)) for text in texts)
            elif texts:
                yield field.name, self._joined(field, texts)
        else:
            yield field.name, self._text(field, as_text(value))

    def further(self, members: Mapping[str, Any]) -> Iterator[tuple[str, Text]]:
        """Yield the members of an object that no field has. Raises ToolError."""
        field = FieldConfig(name="?", value="")
        for name, value in members.items():
            values = value if isinstance(value, list) else [] if value is None else [value]
            self._names.check(name, "", name)
            yield from ((name, self._text(field, text)) for text in element_texts(name, values))

    def _members(self, field: FieldConfig, value: Mapping[str, Any]) -> Iterator[tuple[str, Text]]:
        texts = {
            name: scalar_text(field.name, part) for name, part in value.items() if part is not None
        }
        if field.explode:
            for name, text in texts.items():
                yield self._names.check(name, field.name, name), self._text(field, text)
        elif texts:
            flat = [text for pair in texts.items() for text in pair]
            yield field.name, self._joined(field, flat)

    def _text(self, field: FieldConfig, text: str) -> str:
        if field.allow_reserved and self._is_encoded:
            return EncodedText(_reserved(text, _RESERVED))
        return text

    def _joined(self, field: FieldConfig, texts: Sequence[str]) -> str:
        between = _BETWEEN[field.style]
        if between != "," or not self._is_encoded:
            # They are written alike between values and inside of one.
            _check_without(field.name, texts, between)
        if not self._is_encoded:
            return between.join(texts)
        # Each is encoded alone: else its own commas would be read as those between the values.
        safe = _RESERVED.replace(",", "") if field.allow_reserved else ""
        joint = quote(between, safe=",")
        return EncodedText(joint.join(_reserved(text, safe) for text in texts))


def part_texts(field: FieldConfig, value: Any) -> Iterator[str]:
    """Yield the text of each value of a part: JSON where its type is JSON, or where a value needs it."""
    is_json = is_structured(value) or (
        isinstance(field, PartConfig) and is_json_type(field.media_type)
    )
    for part in value if isinstance(value, list) else [value]:
        if part is not None:
            yield orjson.dumps(part).decode() if is_json else as_text(part)


def is_structured(value: Any) -> bool:
    """Whether a value is an object, or a list with a list or an object in it."""
    parts = value if isinstance(value, list) else [value] if isinstance(value, Mapping) else []
    return any(isinstance(part, Mapping | list) for part in parts)


def _reserved(text: str, safe: str) -> str:
    """Percent-encode a text. With reserved characters, what is percent-encoded already stays, too (RFC
    6570, section 3.2.3)."""
    if not safe:
        return quote(text, safe="")
    pieces = _ENCODED.split(text)
    return "".join(p if _ENCODED.fullmatch(p) else quote(p, safe=safe) for p in pieces)


def _check_without(name: str, texts: Iterable[str], between: str) -> None:
    """Refuse texts with a character that the service would read as the end of a value. Raises ToolError."""
    for text in texts:
        unfit = next((mark for mark in between if mark in text), None)
        if unfit is not None:
            raise ToolError(
                f"{name[:100]!r} has {unfit!r} inside a value, which the request cannot express there: "
                f"{text[:100]!r}"
            )


def _deep(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a value in brackets. A missing member is left out."""
    if isinstance(value, Mapping):
        _check_without(name, value, "[]")
        for member, part in value.items():
            yield from _deep(f"{name}[{member}]", part)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _deep(f"{name}[{number}]", part)
    elif value is not None:
        yield name, as_text(value)


def element_texts(name: str, values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts of the elements of a list. Null is left out, as a missing member is (RFC 6570,
    section 2.3). Raises ToolError."""
    yield from (scalar_text(name, part) for part in values if part is not None)


def scalar_text(name: str, value: Any) -> str:
    """Write a value that is neither a list nor an object. Raises ToolError."""
    if isinstance(value, Mapping | list):
        raise ToolError(
            f"{name[:100]!r} has a list or an object inside a list or an object, which the request "
            "cannot express there"
        )
    return as_text(value)


def path_text(config: PathConfig, value: Any) -> str:
    """Write a value as a part of a path. Raises ToolError."""
    name, style, explode = config.name, config.style, config.explode
    safe = _RESERVED_IN_PATHS if config.allow_reserved else ""
    if style == "json":
        return _segment(orjson.dumps(value).decode(), safe)
    start = {"simple": "", "label": ".", "matrix": ";"}[style]
    between = "," if style == "simple" or not explode else start
    if isinstance(value, Mapping):
        pairs = [
            (_segment(member, safe), _segment(scalar_text(name, part), safe))
            for member, part in value.items()
            if part is not None
        ]
        parts = ["=".join(p) for p in pairs] if explode else [text for p in pairs for text in p]
        named = style == "matrix" and not explode
    else:
        values = value if isinstance(value, list) else [value]
        parts = [_segment(text, safe) for text in element_texts(name, values)]
        named = style == "matrix"
        if named and explode:
            parts, named = [f"{quote(name, safe='')}={part}" for part in parts], False
    if not parts:
        raise ToolError(_EMPTY)
    if between == "." and isinstance(value, Mapping | list):
        _check_without(name, parts, ".")
    prefix = f"{quote(name, safe='')}=" if named else ""
    return f"{start}{prefix}{between.join(parts)}"


_EMPTY: Final = "A value in the address must not be empty, '.' or '..'"


def _segment(text: str, safe: str) -> str:
    if text in ("", ".", ".."):
        raise ToolError(_EMPTY)
    return _reserved(text, safe)


def header_text(config: HeaderConfig) -> Callable[[Any], str]:
    """Return what writes a value into a header; a cookie's must not end it and begin another one. What
    it returns raises ToolError."""
    name = config.name
    is_cookie = name.lower() == "cookie"

    def write(value: Any) -> str:
        if config.style == "json":
            text = orjson.dumps(value).decode()
        elif is_cookie:
            text = scalar_text(name, [value] if isinstance(value, Mapping | list) else value)
        elif isinstance(value, Mapping):
            members = [(k, scalar_text(name, v)) for k, v in value.items() if v is not None]
            _check_without(name, (member for member, _ in members), ",=" if config.explode else ",")
            _check_without(name, (text for _, text in members), ",")
            text = ",".join(("=" if config.explode else ",").join(pair) for pair in members)
        elif isinstance(value, list):
            texts = list(element_texts(name, value))
            _check_without(name, texts, ",")  # nothing is percent-encoded in a header
            text = ",".join(texts)
        else:
            text = as_text(value)
        return quote(text, safe=_IN_COOKIES) if is_cookie else text

    return write
