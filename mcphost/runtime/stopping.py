"""Stops pydantic early on large values: by itself it checks all of a value and keeps every error.

A second validator is made from the same schema. It stops at the first invalid item of a list, or
member of an open object. What it accepts, it reads as the first one does.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

_LISTS: Final = frozenset({"list", "set", "frozenset", "tuple"})
_NOT_CORE_SCHEMAS: Final = frozenset(
    {"cls", "metadata", "default", "expected", "members", "config", "serialization", "function"}
)


class MisfitError(Exception):
    """A member of an open object is invalid; the cause is pydantic's error."""


def stopping(model: type[BaseModel]) -> Callable[..., Any]:
    """Return `validate_json` for a model, stopping at the first misfit of each list and open
    object.

    It raises what pydantic raises, with few errors, or Misfit.
    """
    schema = model.__pydantic_core_schema__
    # A union tries its other choices after a misfit, so a misfit within one must not end the whole
    # validation.
    return SchemaValidator(
        _stopping(schema, final=not _has_union(schema)), _use_prebuilt=False
    ).validate_json


def _stopping(node: Any, *, final: bool) -> Any:
    if isinstance(node, list | tuple):
        return type(node)(_stopping(child, final=final) for child in node)
    if not isinstance(node, Mapping):
        return node
    schema = {
        name: value if name in _NOT_CORE_SCHEMAS else _stopping(value, final=final)
        for name, value in node.items()
    }
    if node.get("type") in _LISTS:
        schema["fail_fast"] = True
    if node.get("type") == "dict" and final and "values_schema" in schema:
        wrapped = {"type": "no-info", "function": _or_end}
        schema["values_schema"] = {
            "type": "function-wrap",
            "function": wrapped,
            "schema": schema["values_schema"],
        }
    return schema


def _has_union(node: Any) -> bool:
    if isinstance(node, list | tuple):
        return any(map(_has_union, node))
    if not isinstance(node, Mapping):
        return False
    inner = (value for name, value in node.items() if name not in _NOT_CORE_SCHEMAS)
    return node.get("type") == "union" or any(map(_has_union, inner))


def _or_end(value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        return read(value)
    except ValidationError as error:
        raise MisfitError from error
