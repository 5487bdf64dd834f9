"""The fields of a form, from a pydantic model or a JSON Schema: checked once, then used many times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar, get_args

import orjson
from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError, ValidationError
from pydantic_core import core_schema

from mcphost.protocol.forms import check_form, expected, is_typed
from mcphost.runtime.questions import InvalidAnswerError, QuestionRefusedError
from mcphost.runtime.schema import MAX_CHARACTERS, MAX_PROBLEMS, ArgumentProblem, Validator
from mcphost.sdk.flattening import flat_schema

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_REMEMBERED: Final = 1024
_AUTHORS_OWN: Final = frozenset({"value_error", "assertion_error"})
_OF_PYDANTIC: Final = frozenset(get_args(core_schema.ErrorType)) - _AUTHORS_OWN
"""Errors whose messages pydantic wrote. A validator may also raise errors of types of its own."""
_BRIEF: Any = {"include_url": False, "include_context": False, "include_input": False}


@dataclass(frozen=True, slots=True)
class AskedFor(Generic[T]):
    """A checked form. `typed`: whether the user can type something into it (`protocol.forms`).

    `read` converts accepted content to the author's value, or raises InvalidAnswerError.
    """

    schema: Mapping[str, Any]
    typed: bool
    read: Callable[[Mapping[str, Any]], T]


def form_of(model_or_schema: Any) -> AskedFor[Any]:
    """Return the form of a model or a schema. Raises QuestionRefusedError with all its problems."""
    if isinstance(model_or_schema, type) and issubclass(model_or_schema, BaseModel):
        return _of_model(model_or_schema)
    if not isinstance(model_or_schema, Mapping):
        raise QuestionRefusedError("a form is a pydantic model or a JSON Schema")
    try:
        schema = orjson.dumps(dict(model_or_schema))
    except TypeError as error:
        raise QuestionRefusedError(f"the form is not JSON: {error}") from None
    return _of_schema(schema)


@lru_cache(maxsize=_REMEMBERED)
def _of_model(model: type[M]) -> AskedFor[M]:
    try:
        schema, empty = flat_schema(model)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise QuestionRefusedError(f"{model.__name__} has no schema: {error}") from None
    take_in = _checked(schema, model.__name__)
    validate = model.__pydantic_validator__.validate_json

    def read(content: Mapping[str, Any]) -> M:
        values = {**dict.fromkeys(empty), **take_in(content)}
        try:
            return validate(orjson.dumps(values), by_alias=True, by_name=False)  # type: ignore[no-any-return]
        except ValidationError as error:
            errors = error.errors(**_BRIEF)[:MAX_PROBLEMS]
            raise InvalidAnswerError("; ".join(map(_describe_error, errors))) from None

    return AskedFor(schema, is_typed(schema), read)


@lru_cache(maxsize=_REMEMBERED)
def _of_schema(written: bytes) -> AskedFor[dict[str, Any]]:
    schema = orjson.loads(written)
    take_in = _checked(schema, "the schema")
    properties = None if schema.get("additionalProperties") is True else schema["properties"]

    def read(content: Mapping[str, Any]) -> dict[str, Any]:
        values = take_in(content)
        return {name: v for name, v in values.items() if properties is None or name in properties}

    return AskedFor(schema, is_typed(schema), read)


def _checked(schema: Any, name: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that validates content. An optional field that a client sends empty (null, or ""
    or [] where its schema does not allow them) counts as missing.

    Raises QuestionRefusedError for a schema that is not a form.
    """
    problems = check_form(schema)
    if problems:
        listed = "; ".join(f"{p.path or 'the root'}: {p.message}" for p in problems)
        raise QuestionRefusedError(f"{name} is not a valid form: {listed}")
    validator, properties = Validator(schema, formats=True), schema["properties"]
    optional = properties.keys() - schema.get("required", ())
    empty = {name: Validator(properties[name], formats=True) for name in optional}

    def is_missing(name: str, value: Any) -> bool:
        return name in empty and (
            value is None or (value in ("", []) and bool(empty[name].problems(value)))
        )

    def reason(problem: ArgumentProblem, values: Mapping[str, Any]) -> str:
        path = f"{problem.path}."
        name = next((name for name in properties if path.startswith(f"{name}.")), None)
        if name is None or name not in values:
            return str(problem)
        return f"{name}: not {expected(properties[name])}"

    def take_in(content: Mapping[str, Any]) -> dict[str, Any]:
        try:  # a copy that is plain JSON, like an answer received from a client
            plain: dict[str, Any] = orjson.loads(orjson.dumps(content))
        except TypeError:
            raise InvalidAnswerError("is not JSON") from None
        values = {name: v for name, v in plain.items() if not is_missing(name, v)}
        problems = validator.problems(values)
        if problems:
            reasons = dict.fromkeys(reason(problem, values) for problem in problems)
            raise InvalidAnswerError("; ".join(reasons))
        return values

    return take_in


def _describe_error(error: Mapping[str, Any]) -> str:
    """Describe one of pydantic's errors. An error of the author's own validator might quote the
    answer."""
    message = error["msg"] if error["type"] in _OF_PYDANTIC else "is not accepted"
    where = ".".join(map(str, error["loc"]))[:MAX_CHARACTERS]
    return f"{where}: {message}" if where else message


class Form(BaseModel):
    """A form as a pydantic model that is checked when the class is defined.

        class Resolution(Form):
            resolution: Literal["Fixed", "Won't Fix", "Duplicate", "By Design"]
            comment: str = Field("", description="What the reporter should know", max_length=500)

    A field is a text (`str`, `date`, `datetime`, `AnyUrl`), a number (`int`, `float`, `Decimal`), a
    `bool`, a choice (`Literal` or an `Enum` of strings) or a multiple choice (`list[Literal[…]]`).
    A field that may be None, or that has a default, may be left empty. Choices get titles by a
    union of `Annotated[Literal["x"], Field(title="…")]`; a text becomes an email address by
    `Field(json_schema_extra={"format": "email"})`. `min_length`, `max_length`, `ge` and `le` are
    sent to the client. Your own validators run on the answer, and if they refuse it, the question
    is asked again. Any other pydantic model can be used, too; it is checked when it is asked for.

    Raises QuestionRefusedError, at the class definition, for a form without fields, and for what no form
    can contain: nested models, free lists, patterns, web addresses in the texts, and fields that ask for
    a secret.
    """

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        if cls.__base__ is not BaseModel:  # not Form itself
            form_of(cls)
