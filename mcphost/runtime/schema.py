"""Validation of values against a JSON Schema, compiled once and used in every call.

Whether a schema is legal is checked by `mcphost.protocol.schemas`; here it is trusted. Nothing is
ever fetched, and patterns run in linear time.

`jsonschema_rs` finds equal items (`uniqueItems`) by a hash of their numbers as floats. Different whole
numbers beyond 2^53 that round to the same float, and items that contain them, are compared each with
each: 2,000 of them take seconds, so that values with many of them are refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

import orjson
from jsonschema_rs import RegexOptions, ValidationError, ValidationErrorKind, validator_for
from pydantic_core import ValidationError as PydanticError

from mcphost.protocol.effort import EXPLAINED_VALUES, effort_of, holds_at_most, is_explained
from mcphost.protocol.nesting import is_deeper
from mcphost.protocol.schemas import is_recursive
from mcphost.protocol.subschemas import walk

MAX_PROBLEMS = 20
MAX_CHARACTERS = 300
EXPLAINED_DEPTH = 4
"""How deep a value may nest for its errors against a recursive schema to be listed."""
FIRST_INEXACT: Final = 2**53
"""From here on, different whole numbers may be the same float."""
MAX_COMPARED: Final = 100
"""How many numbers may be compared each with each."""

_QUOTED = re.compile(r"\[[^\[]*input_value=.*", re.DOTALL)
_QUOTING = {"union_tag_invalid": "does not fit one of the alternatives"}
"""Types of pydantic's errors whose messages quote the value, and what is said instead."""
_STAND_IN = "the value"
_MISFIT = "does not fit the schema"
_COLLIDING = "holds different whole numbers beyond 2^53 too close to one another to be checked for uniqueness"
_NUMBERS: Final = frozenset({int, float})
_DIGITS: Final = bytes(0 if 48 <= byte <= 57 else 1 for byte in range(256))
_LONG: Final = bytes(len(str(FIRST_INEXACT)))


class UnusableSchemaError(ValueError):
    """The given schema cannot be compiled; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """One problem of a value. `path` is the field's name (`fields.System.State`), or empty."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Validator:
    """One compiled schema. Raises UnusableSchemaError if it cannot be compiled.

    `formats`: also check `format`, which JSON Schema leaves optional. Problems never quote the
    value they are about, so they may be logged and sent. `effort` is the cost of checking a value.
    """

    __slots__ = ("_compiled", "_has_unique_items", "_recursive", "effort", "schema")

    def __init__(self, schema: Mapping[str, Any] | bool, *, formats: bool = False) -> None:
        self.schema = schema
        self._recursive = isinstance(schema, Mapping) and is_recursive(schema)
        try:
            self._compiled = validator_for(
                schema if isinstance(schema, bool) else dict(schema),
                offline=True,
                pattern_options=RegexOptions(),
                mask=_STAND_IN,
                validate_formats=formats,
            )
        except ValidationError as error:
            raise UnusableSchemaError(_cut(error.message)) from None
        except (TypeError, ValueError) as error:
            raise UnusableSchemaError(_cut(str(error))) from None
        self._has_unique_items = has_unique_items(schema)
        self.effort = effort_of(schema)

    def problems(self, value: Any) -> tuple[ArgumentProblem, ...]:
        """Return the problems of `value`, at most twenty; empty if it fits.

        `value` must be JSON of bounded depth, as `orjson` reads and writes it; anything else is one
        problem. A large value, or a schema with many alternatives, gets one problem too: the first, or
        only that it does not fit. Finding that is fast, whereas a list of all errors takes seconds. The
        same holds for a deep value and a recursive schema, where the list takes time exponential in
        the depth.
        """
        try:
            if self._has_unique_items and has_float_collisions(value):
                return (ArgumentProblem("", _COLLIDING),)
            if self._compiled.is_valid(value):
                return ()
            return self._explained(value)
        except ValueError:
            return (ArgumentProblem("", "is not JSON"),)

    def _explained(self, value: Any) -> tuple[ArgumentProblem, ...]:
        if not is_explained(value) or (self._recursive and is_deeper(value, EXPLAINED_DEPTH)):
            return (ArgumentProblem("", _MISFIT),)
        alternatives = self.effort.alternatives
        if holds_at_most(value, EXPLAINED_VALUES // alternatives):
            errors = self._compiled.iter_errors(value)
            return tuple(islice((p for e in errors for p in _problems(e)), MAX_PROBLEMS))
        if alternatives == 1:  # with more, even the first error contains those of every alternative
            try:
                self._compiled.validate(value)
            except ValidationError as error:
                return tuple(islice(_problems(error), MAX_PROBLEMS))
        return (ArgumentProblem("", _MISFIT),)


def reason_of(error: Exception) -> str:
    """Describe why a value cannot be read or written as a type, without the value: for logs and messages."""
    if isinstance(error, PydanticError):
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [
            str(ArgumentProblem(_join(list(p["loc"])), _QUOTING.get(p["type"], p["msg"])))
            for p in problems[:MAX_PROBLEMS]
        ]
        return "; ".join(texts)
    # A serializer's warnings quote each value in brackets.
    return _cut(f"{type(error).__name__}: {_QUOTED.sub('…', str(error))}")


def _problems(error: ValidationError) -> Iterator[ArgumentProblem]:
    """Convert an error. A missing or unexpected field is reported under its own name, not its
    parent's."""
    path = error.instance_path
    match error.kind:
        case ValidationErrorKind.Required(property=name):
            yield ArgumentProblem(_join([*path, name]), "is required")
        case (
            ValidationErrorKind.AdditionalProperties(unexpected=names)
            | ValidationErrorKind.UnevaluatedProperties(unexpected=names)
        ):
            for name in names:
                yield ArgumentProblem(_join([*path, name]), "is not expected")
        case ValidationErrorKind.FalseSchema() if error.schema_path[-1:] == [
            "additionalProperties"
        ]:
            yield ArgumentProblem(_join(path), "holds a field that is not expected")
        case _:
            yield ArgumentProblem(_join(path), _cut(error.message.removeprefix(_STAND_IN).strip()))


def _join(path: list[str | int]) -> str:
    return _cut(".".join(map(str, path)))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"


def has_unique_items(schema: Any) -> bool:
    """Whether a schema has `uniqueItems` anywhere."""
    return isinstance(schema, Mapping) and any(
        subschema.keywords.get("uniqueItems") is True for subschema in walk(schema)
    )


def has_float_collisions(value: Any) -> bool:
    """Whether JSON has more than MAX_COMPARED numbers from FIRST_INEXACT on, of which two differ and are equal as floats."""
    if holds_at_most(value, MAX_COMPARED):
        return False
    try:
        written = orjson.dumps(value)
    except TypeError:  # the next check refuses values that are not JSON
        return False
    # Without so many digits in a row there is no such number. A walk in Python takes ten times as
    # long.
    if _LONG not in written.translate(_DIGITS):
        return False
    numbers: list[int | float] = []
    level = [value]
    while level:
        numbers += [
            number for number in level if type(number) in _NUMBERS and abs(number) >= FIRST_INEXACT
        ]
        holders = (node for node in level if type(node) is dict or type(node) is list)
        parts = (holder.values() if type(holder) is dict else holder for holder in holders)
        level = list(chain.from_iterable(parts))
    if len(numbers) <= MAX_COMPARED:
        return False
    floats = len(set(map(float, numbers)))
    return floats < len(numbers) and floats < len(set(numbers))
