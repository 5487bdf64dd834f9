"""Keywords of schemas in OpenAPI documents: which are usable, and how those of 3.0 are rewritten.

A keyword that only narrows is left out if it cannot be used: the service checks the value itself.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from jsonschema_rs import RegexOptions, ValidationError, validator_for

from mcphost.protocol.json_values import MAX_INTEGER, check_json

_TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")
_BOUNDS: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
MAX_PATTERN: Final = 2_000
"""Longer patterns are left out."""


def plain_text(text: str) -> str:
    """Return a text without control characters except line breaks and tabs, and without surrogates."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


@lru_cache(maxsize=1024)
def is_usable_pattern(pattern: str) -> bool:
    """Whether a pattern needs linear time only, as those of our schemas must."""
    if len(pattern) > MAX_PATTERN or check_json(pattern):
        return False
    try:
        validator_for({"pattern": pattern}, offline=True, pattern_options=RegexOptions())
    except (ValidationError, ValueError):
        return False
    return True


def write_bounds(schema: dict[str, Any]) -> None:
    """Rewrite `exclusiveMinimum: true` of 3.0."""
    for exclusive, inclusive in _BOUNDS.items():
        if schema.get(exclusive) is True and inclusive in schema:
            schema[exclusive] = schema.pop(inclusive)
        elif isinstance(schema.get(exclusive), bool):
            del schema[exclusive]


def repair(schema: dict[str, Any]) -> None:
    """Leave out the keywords of a schema that cannot be used, and write the texts of others plainly."""
    if isinstance(schema.get("type"), list):
        schema["type"] = [kind for kind in _TYPES if kind in schema["type"]]
    write_values(schema)
    if isinstance(schema.get("enum"), list):
        schema["enum"] = _unique(schema["enum"])
    if isinstance(schema.get("required"), list):
        schema["required"] = [name for name in schema["required"] if isinstance(name, str)]
    for keyword in [key for key, value in schema.items() if not _is_usable(key, value)]:
        del schema[keyword]
    for keyword in ("title", "description"):
        if keyword in schema:
            schema[keyword] = plain_text(schema[keyword])


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of 3.0 that takes null, too."""
    kind = schema.get("type")
    if isinstance(kind, str) and "const" not in schema:
        schema["type"] = [kind, "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}


def _is_usable(keyword: str, value: Any) -> bool:
    check = _CHECKS.get(keyword)
    return check is None or check(value)


def write_values(schema: dict[str, Any]) -> None:
    """Write the values of a schema as its type has them: `enum: [1, true]` of texts, `["1"]` of numbers.

    Other programs read YAML as numbers and words of its own, and write them so into JSON."""
    types = schema.get("type")
    only = [name for name in (types if isinstance(types, list) else [types]) if name != "null"]
    if len(only) != 1:
        return
    for keyword in ("enum", "examples"):
        if isinstance(schema.get(keyword), list):
            schema[keyword] = [value_of_type(only[0], value) for value in schema[keyword]]
    for keyword in ("const", "default"):
        if keyword in schema:
            schema[keyword] = value_of_type(only[0], schema[keyword])


def value_of_type(type_name: Any, value: Any) -> Any:
    """Return a text for a number or a boolean, or the other way round, where only that has the type."""
    match type_name, value:
        case "string", bool():
            return str(value).lower()
        case "string", int() | float():
            return str(value)
        case (("integer" | "number"), str()) if _NUMBER.fullmatch(value):
            return orjson.loads(value)
        case "boolean", ("true" | "false"):
            return value == "true"
        case _:
            return value


_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
"""Texts of numbers that are read exactly."""


def _unique(values: list[Any]) -> list[Any]:
    """Return the values without repetitions; `true` is not 1."""
    return list({(type(value), repr(value)): value for value in values}.values())


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -MAX_INTEGER <= value < MAX_INTEGER
    )


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_type(value: Any) -> bool:
    return bool(value) if isinstance(value, list) else isinstance(value, str) and value in _TYPES


def _is_names(value: Any) -> bool:
    texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return texts and len(set(value)) == len(value) and not check_json(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and not check_json(value)


def _is_storable(value: Any) -> bool:
    return not check_json(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _is_type,
    "required": _is_names,
    "enum": lambda value: bool(value) and _is_list(value),
    "examples": _is_list,
    "const": _is_storable,
    "default": _is_storable,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "pattern": lambda value: isinstance(value, str) and is_usable_pattern(value),
    "dependentRequired": lambda value: (
        isinstance(value, Mapping) and all(map(_is_names, value.values()))
    ),
    **dict.fromkeys(("minimum", "maximum", *_BOUNDS), _is_number),
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
            *("minContains", "maxContains"),
        ),
        _is_count,
    ),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _is_flag),
    **dict.fromkeys(
        ("title", "description", "format", "contentEncoding", "contentMediaType", "$comment"),
        _is_text,
    ),
}
