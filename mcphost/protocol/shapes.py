"""The wire models of `mcp_types` as compiled schemas.

Pydantic checks the whole value and keeps an error for each misfit: a megabyte of zeros in place of
content blocks takes seconds and gigabytes. A compiled schema stops at the first misfit.
"""

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
from pydantic import BaseModel, TypeAdapter

_WHOLE: Final = "writtenWhole"
_ANYTHING: Final = "JSONValue"
"""The definition that any JSON matches."""


class _WrittenWhole:
    """Keyword: an integer is written without a fraction. JSON Schema accepts `1.0` as one, the
    models do not."""

    def __init__(self, parent: Any, value: Any, path: Any) -> None:
        pass

    def validate(self, instance: Any) -> None:
        if isinstance(instance, float):
            raise ValueError("has a fraction")


class Shape:
    """The values that a wire type accepts, by the JSON Schema that pydantic generates for it."""

    __slots__ = ("_compiled",)

    def __init__(self, model: type[BaseModel] | TypeAdapter[Any]) -> None:
        adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
        self._compiled: Final = jsonschema_rs.Draft202012Validator(
            _strict(adapter.json_schema()), offline=True, keywords={_WHOLE: _WrittenWhole}
        )

    def fits(self, value: Any) -> bool:
        """Whether JSON, as `orjson` parses it, is of the type. Stops at the first misfit."""
        return self._compiled.is_valid(value)


def _strict(node: Any) -> Any:
    """Rewrite a schema so that integers have no fraction, except where any number is allowed."""
    if isinstance(node, list):
        numbers = {"type": "number"} in node
        return [each if numbers and each == {"type": "integer"} else _strict(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    strict = {name: True if name == _ANYTHING else _strict(value) for name, value in node.items()}
    return {**strict, _WHOLE: True} if node.get("type") == "integer" else strict
