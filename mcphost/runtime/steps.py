"""Steps: functions whose results are recorded, so that later rounds do not run them again."""

import inspect
import json
import typing
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from heapq import heappop, heappush
from types import FunctionType
from typing import Any
from uuid import UUID, uuid5

import orjson
from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import PydanticSerializationError, ValidationError, to_jsonable_python

from mcphost.protocol.json_values import digest, without_lone_surrogates
from mcphost.runtime.schema import reason_of

KEY = "idempotency_key"
"""The name of the parameter with which a step's function receives its idempotency key."""

MAX_NAME = 100
DIGEST_CHARACTERS = 22
"""How much of the digest of a step's arguments is kept: 132 bits, because every step's digest takes
space in the request state."""


class MisusedError(Exception):
    """The program broke a rule of rounds. The message is for its author."""


@dataclass(slots=True)
class _Occurrences:
    """The occurrences of steps with the same name and arguments. A failed one is taken again first."""

    last: int = 0
    failed: list[int] = field(default_factory=list)

    def take(self) -> int:
        if self.failed:
            return heappop(self.failed)
        self.last += 1
        return self.last


class Step(typing.NamedTuple):
    """One occurrence of a step: `id` is its key in the journal, the same in every round."""

    name: str
    pair: str
    occurrence: int

    @property
    def id(self) -> str:
        return f"{self.pair} {self.occurrence}"

    def idempotency_key(self, call: UUID) -> str:
        """Return a key that is the same whenever this occurrence runs, and unique to it."""
        return str(uuid5(call, self.id))


class Steps:
    """The steps of one round, counted by name and arguments."""

    __slots__ = ("_occurrences",)

    def __init__(self) -> None:
        self._occurrences: defaultdict[str, _Occurrences] = defaultdict(_Occurrences)

    def take(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Step:
        """Return the next occurrence of a step. Raises Misused for an invalid step."""
        unchecked: Any = name  # of an author, who may pass anything
        if not isinstance(unchecked, str) or not 0 < len(unchecked) <= MAX_NAME:
            raise MisusedError(f"the name of a step is a text of at most {MAX_NAME} characters")
        try:
            arguments_digest = digest([_plain(list(args)), _plain(dict(kwargs))])
        except (ValueError, TypeError, PydanticSerializationError) as error:
            text = f"the arguments of step {name!r} cannot be written as JSON: {reason_of(error)}"
            raise MisusedError(
                f"{text} (pass values that are not data by a closure or functools.partial)"
            ) from None
        pair = f"step {name} {arguments_digest[:DIGEST_CHARACTERS]}"
        return Step(name, pair, self._occurrences[pair].take())

    def counts(self) -> dict[str, list[int]]:
        """Return, for each step, its last occurrence and those that failed."""
        return {
            pair: [occurrences.last, *occurrences.failed]
            for pair, occurrences in self._occurrences.items()
        }

    def count_from(self, counts: Mapping[str, list[int]]) -> None:
        """Go on after these occurrences."""
        for pair, (last, *failed) in counts.items():
            self._occurrences[pair] = _Occurrences(last, failed)

    def give_back(self, step: Step) -> None:
        """Return a failed occurrence: the next step with this name and arguments gets it again."""
        heappush(self._occurrences[step.pair].failed, step.occurrence)


def _plain(value: Any) -> Any:
    """Convert a value to JSON that is the same in every process: sets are sorted, because their
    order varies."""
    match value:
        case dict():
            return {str(to_jsonable_python(key)): _plain(member) for key, member in value.items()}
        case list() | tuple():
            return [_plain(member) for member in value]
        case set() | frozenset():
            return sorted(map(_plain, value), key=orjson.dumps)
        case _:
            return to_jsonable_python(value, bytes_mode="base64")


@dataclass(frozen=True, slots=True)
class StepShape:
    """The properties of a step's function: how its result is stored, and whether it takes the key."""

    returns: TypeAdapter[Any]
    takes_key: bool
    waits: bool

    def written(self, value: Any, name: str) -> tuple[Any, Any]:
        """Return the result as JSON, and as it is read back. Raises Misused for results that are
        not JSON."""
        try:
            plain = self._plain(value)
            return plain, self._again(plain)
        except (ValueError, TypeError) as error:
            reason = reason_of(error)
            raise MisusedError(
                f"the result of step {name!r} cannot be recorded: {reason}"
            ) from None

    def read(self, plain: Any, name: str) -> Any:
        """Read a recorded result back by the function's return annotation. Raises Misused."""
        try:
            return self._again(plain)
        except ValidationError as error:
            reason = reason_of(error)
            raise MisusedError(
                f"the recorded result of step {name!r} is not what its function returns: {reason}"
            ) from None

    def _plain(self, value: Any) -> Any:
        ways: dict[str, Any] = {"by_alias": True, "round_trip": True, "warnings": "error"}
        try:
            return json.loads(self.returns.dump_json(value, **ways))
        except PydanticSerializationError:  # perhaps for half of a surrogate pair
            return without_lone_surrogates(self.returns.dump_python(value, mode="json", **ways))

    def _again(self, plain: Any) -> Any:
        """Raises ValidationError, and TypeError for integers beyond 64 bits, which no request state
        can hold."""
        return self.returns.validate_json(orjson.dumps(plain))


def shape_of(function: Callable[..., Any], name: str) -> StepShape:
    """Inspect a step's function. Raises Misused for a return annotation that cannot be used.

    A function without one may return any JSON.
    """
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    try:
        annotation = getattr(inner, "__annotations__", {}).get("return", Any)
        if isinstance(annotation, str):
            annotation = typing.get_type_hints(inner, include_extras=True)["return"]
        adapter = _adapter_of(annotation)
    except (NameError, TypeError, PydanticUserError) as error:
        text = f"the return annotation of step {name!r} cannot be used: {error}"
        raise MisusedError(text) from error
    return StepShape(adapter, _takes_key(function), inspect.iscoroutinefunction(inner))


def _adapter_of(annotation: Any) -> TypeAdapter[Any]:
    """Return the cached adapter, because creating one is slow; one for an unhashable annotation is
    created anew."""
    try:
        hash(annotation)
    except TypeError:
        return TypeAdapter(annotation)
    return _adapter(annotation)


@lru_cache(maxsize=1000)
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def _takes_key(function: Callable[..., Any]) -> bool:
    """Whether the function has the parameter. Most are plain functions, which are fast to inspect."""
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        return KEY in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        return KEY in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions not written in Python have none
        return False
