"""Strict validation of client results against the protocol's types: nothing is coerced."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import orjson
from mcp_types import ListRootsResult, Root
from pydantic import BaseModel, ValidationError

from mcphost.protocol.effort import EXPLAINED_BYTES
from mcphost.protocol.shapes import Shape
from mcphost.runtime.questions import InvalidAnswerError
from mcphost.runtime.stopping import MisfitError, stopping

M = TypeVar("M", bound=BaseModel)

_shape = lru_cache(maxsize=64)(Shape)
_stopping = lru_cache(maxsize=64)(stopping)


def read_roots(result: Mapping[str, Any]) -> list[Root]:
    """Return the roots of a `roots/list` result (spec: client/roots, "Root"). Raises InvalidAnswerError."""
    roots = result.get("roots")
    for at, root in enumerate(roots if isinstance(roots, list) else ()):
        uri = root.get("uri") if isinstance(root, dict) else None
        if not isinstance(uri, str) or not uri.startswith("file://"):
            raise InvalidAnswerError(f"roots.{at}.uri: must begin with file://")
    return read_as(ListRootsResult, result).roots


def read_as(model: type[M], result: Mapping[str, Any]) -> M:
    """Read a result as one of the protocol's types. Raises InvalidAnswerError with the first misfit.

    From bytes, because strict models accept only their own instances from Python.
    """
    read: Callable[..., M] = model.model_validate_json
    try:
        encoded = orjson.dumps(result)
    except TypeError:
        raise InvalidAnswerError("is not JSON") from None
    try:
        if len(encoded) > EXPLAINED_BYTES:
            if not _shape(model).fits(result):
                raise InvalidAnswerError("it is not valid")
            read = _stopping(model)
        return read(encoded, strict=True, by_name=False)
    except MisfitError:
        raise InvalidAnswerError("it is not valid") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        missing = first["type"] == "missing" and len(first["loc"]) == 1
        wrong = "is missing" if missing else "is not valid"
        raise InvalidAnswerError(f"its {first['loc'][0]} {wrong}") from None
