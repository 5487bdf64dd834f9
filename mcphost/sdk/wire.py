"""What clients send back, held strictly against the protocol's own types: nothing is coerced."""

from collections.abc import Mapping
from typing import Any, TypeVar

import orjson
from mcp_types import ListRootsResult, Root
from pydantic import BaseModel, ValidationError

from mcphost.runtime.questions import InvalidAnswer

M = TypeVar("M", bound=BaseModel)


def read_roots(result: Mapping[str, Any]) -> list[Root]:
    """The roots of a `roots/list` (spec: client/roots, "Root"). Raises InvalidAnswer."""
    given = result.get("roots")
    for at, root in enumerate(given if isinstance(given, list) else ()):
        uri = root.get("uri") if isinstance(root, dict) else None
        if not isinstance(uri, str) or not uri.startswith("file://"):
            raise InvalidAnswer(f"roots.{at}.uri: must begin with file://")
    return read_as(ListRootsResult, result).roots


def read_as(model: type[M], result: Mapping[str, Any]) -> M:
    """A result as one of the protocol's types. Raises InvalidAnswer with what does not fit.

    From bytes, because strict models take nothing but their own instances from Python.
    """
    try:
        return model.model_validate_json(orjson.dumps(result), strict=True, by_name=False)
    except TypeError:
        raise InvalidAnswer("is not JSON") from None
    except ValidationError as error:
        first = error.errors()[0]
        missing = first["type"] == "missing" and len(first["loc"]) == 1
        wrong = "is missing" if missing else "is not as it must be"
        raise InvalidAnswer(f"its {first['loc'][0]} {wrong}") from None
