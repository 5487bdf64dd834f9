"""Does this value fit this JSON Schema? Compiled once, asked for every call.

Whether a schema is legal at all is for `mcphost.protocol.schemas` to say; here it is taken as
registered. Nothing is ever fetched, and patterns run in linear time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jsonschema_rs import RegexOptions, ValidationError, ValidationErrorKind, validator_for

from mcphost.protocol.schemas import is_recursive

MOST_PROBLEMS = 20
MOST_CHARACTERS = 300
EXPLAINED_DEPTH = 4
"""How deep a value may nest for its errors against a recursive schema to be listed."""

_STAND_IN = "the value"


class UnusableSchema(ValueError):  # noqa: N818 - a refusal that says what happened
    """What was given as a schema cannot be compiled; the message says why."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where: `path` is the field's name (`fields.System.State`), or empty."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Validator:
    """One compiled schema. Raises UnusableSchema if it cannot be one.

    `formats` says whether a text must be of its `format`, which JSON Schema leaves open. Problems
    never quote the value they are about, so they may be logged and sent.
    """

    __slots__ = ("_compiled", "_recursive", "schema")

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
            raise UnusableSchema(_cut(error.message)) from None
        except (TypeError, ValueError) as error:
            raise UnusableSchema(_cut(str(error))) from None

    def problems(self, value: Any) -> tuple[Problem, ...]:
        """What keeps `value` from fitting, at most twenty things; nothing when it fits.

        `value` must be JSON of bounded depth, as `orjson` reads and writes it; anything else is
        one problem. So is a deep value that does not fit a recursive schema: to list what is wrong
        with it takes time exponential in its depth, to see that it does not fit does not.
        """
        try:
            if self._compiled.is_valid(value):
                return ()
            if self._recursive and _deeper(value, EXPLAINED_DEPTH):
                return (Problem("", "does not fit the schema"),)
            errors = self._compiled.iter_errors(value)
            return tuple(islice((p for e in errors for p in _problems(e)), MOST_PROBLEMS))
        except ValueError:
            return (Problem("", "is not JSON"),)


def _deeper(value: Any, levels: int) -> bool:
    """Whether `value` nests more than `levels` deep."""
    inner: list[Any] = [value]
    for _ in range(levels + 1):
        inner = [
            part
            for node in inner
            if isinstance(node, dict | list)
            for part in (node.values() if isinstance(node, dict) else node)
        ]
    return bool(inner)


def _problems(error: ValidationError) -> Iterator[Problem]:
    """A missing or unexpected field is reported under its own name, not under its parent's."""
    path = error.instance_path
    match error.kind:
        case ValidationErrorKind.Required(property=name):
            yield Problem(_join([*path, name]), "is required")
        case (
            ValidationErrorKind.AdditionalProperties(unexpected=names)
            | ValidationErrorKind.UnevaluatedProperties(unexpected=names)
        ):
            for name in names:
                yield Problem(_join([*path, name]), "is not expected")
        case ValidationErrorKind.FalseSchema() if error.schema_path[-1:] == [
            "additionalProperties"
        ]:
            yield Problem(_join(path), "holds a field that is not expected")
        case _:
            yield Problem(_join(path), _cut(error.message.removeprefix(_STAND_IN).strip()))


def _join(path: list[str | int]) -> str:
    return _cut(".".join(map(str, path)))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
