"""Arguments that fit a schema, for an example call; plausible, not always valid."""

from collections.abc import Mapping
from typing import Any

DEEPEST = 4
_PLAIN: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True}


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool requires, each with a value of its kind."""
    return _object(schema, schema, 0)


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return {
        name: _value(properties[name], root, depth + 1)
        for name in schema.get("required", ())
        if name in properties
    }


def _value(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    schema = _resolved(schema, root)
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return None
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    for several in ("examples", "enum"):
        if schema.get(several):
            return schema[several][0]
    for alternatives in ("anyOf", "oneOf", "allOf"):
        if schema.get(alternatives):
            return _value(schema[alternatives][0], root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object" or "properties" in schema:
        return _object(schema, root, depth)
    if kind == "array":
        return [_value(schema["items"], root, depth + 1)] if "items" in schema else []
    if kind in ("integer", "number") and "minimum" in schema:
        return schema["minimum"]
    return _PLAIN.get(str(kind))


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """The target of a `$ref` into `$defs`, the schema itself without one."""
    if not isinstance(schema, Mapping) or "$ref" not in schema:
        return schema
    place, _, name = str(schema["$ref"]).rpartition("/")
    return root.get(place.removeprefix("#/"), {}).get(name)
