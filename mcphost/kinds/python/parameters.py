"""The arguments of a Python tool: the input schema of a signature, and the conversion from JSON to
objects.

A parameter annotated with `Context` or `SyncContext` gets the call's context and is not an
argument. All others are named arguments. Pydantic derives their schema from their annotations.
Arguments are first validated against that schema, then converted by pydantic, so that the function
gets dates, enums and models. With a schema given explicitly, arguments arrive as plain JSON.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from mcphost.kinds.functions.docstrings import Docstring
from mcphost.kinds.functions.program import InvalidArgumentsError, Parameters, Read
from mcphost.kinds.functions.schemas import SignatureError, input_validator, schema_of
from mcphost.protocol.effort import EXPLAINED_BYTES
from mcphost.runtime.schema import MAX_PROBLEMS, ArgumentProblem
from mcphost.runtime.stopping import MisfitError, stopping
from mcphost.sdk import Context, SyncContext

Hints = Mapping[str, Any]


def parameters_of(
    function: Callable[..., Any],
    hints: Hints,
    docstring: Docstring,
    input_schema: Mapping[str, Any] | None = None,
) -> Parameters:
    """Return the parameters of `function`, by its signature or by the given input schema.

    What the docstring says of a parameter that has no other description is taken from it.
    Raises SignatureError, or pydantic's error for an annotation that it cannot read.
    """
    own: list[Parameter] = []
    context: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if is_context(hints.get(parameter.name)):
            context.append(_nameable(parameter, verbatim=False).name)
            docstring.take(parameter.name)  # callers know nothing of it
        else:
            own.append(_nameable(parameter, verbatim=input_schema is not None))
    if input_schema is not None:
        return Parameters(
            input_validator(input_schema), _pass_on(own, input_schema), tuple(context)
        )
    # One field per parameter. Their names are neutral, because pydantic reserves `copy` and `schema`.
    fields = {f"p{i}": _field(p, hints.get(p.name, Any), docstring) for i, p in enumerate(own)}
    model: type[BaseModel] = create_model(
        "Arguments", __config__=ConfigDict(extra="forbid"), **fields
    )
    schema = schema_of(TypeAdapter(model), "validation")
    del schema["title"]
    names = tuple(p.name for p in own)
    return Parameters(input_validator(schema), _reader(model, names), tuple(context))


def is_context(annotation: Any) -> bool:
    """Whether an annotation is `Context` or `SyncContext`, or a union with one."""
    return is_annotated(annotation, Context) or is_annotated(annotation, SyncContext)


def is_annotated(annotation: Any, as_what: type) -> bool:
    """Whether an annotation is this class, or a union with it."""
    if get_origin(annotation) in (Union, UnionType):
        return any(is_annotated(member, as_what) for member in get_args(annotation))
    return annotation is as_what


def _nameable(parameter: Parameter, *, verbatim: bool) -> Parameter:
    """Return the parameter, if it can be given by name. `**rest` is for given schemas only."""
    named = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    if parameter.kind in named or (verbatim and parameter.kind is Parameter.VAR_KEYWORD):
        return parameter
    raise SignatureError(f"the parameter {str(parameter)!r} cannot be given by name")


def _field(parameter: Parameter, annotation: Any, docstring: Docstring) -> Any:
    """Return annotation and default in pydantic's form, with the argument's name on the wire, and its
    description: that of `Field`, a text as in `Annotated[str, "…"]`, or the docstring's."""
    default = parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], Parameter.empty
    info = FieldInfo.from_annotation(annotation)
    options: dict[str, Any] = {"alias": info.alias or parameter.name}
    if default is not Parameter.empty:
        options["default"] = default
    description = info.description or next((m for m in info.metadata if isinstance(m, str)), "")
    if docstring.peek(parameter.name) == description or not description:
        description = docstring.take(parameter.name) or description
    if description and not info.description:
        options["description"] = description
    return annotation, Field(**options)


def _reader(model: type[BaseModel], names: tuple[str, ...]) -> Read:
    """Return a reader by a model whose fields `p0`, `p1`, … are the values of `names`."""
    fields = [f"p{i}" for i in range(len(names))]
    validate = model.__pydantic_validator__.validate_json
    of_large = cache(partial(stopping, model))

    def read(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            encoded = orjson.dumps(arguments)
        except TypeError as error:
            raise InvalidArgumentsError(
                (ArgumentProblem("", "contain values that JSON does not support"),)
            ) from error
        try:
            is_large = len(encoded) > EXPLAINED_BYTES
            values = (of_large() if is_large else validate)(encoded).__dict__
        except ValidationError as error:
            problems = error.errors(**_BRIEF)[:MAX_PROBLEMS]
            raise InvalidArgumentsError(
                tuple(ArgumentProblem(".".join(map(str, p["loc"])), p["msg"]) for p in problems)
            ) from None
        except MisfitError:
            raise InvalidArgumentsError((ArgumentProblem("", "cannot be read"),)) from None
        return dict(zip(names, map(values.__getitem__, fields), strict=True))

    return read


_BRIEF: Any = {"include_url": False, "include_context": False, "include_input": False}


def _pass_on(own: list[Parameter], input_schema: Mapping[str, Any]) -> Read:
    """Return a reader that passes arguments on as they are: all of them to `**rest`, else the named
    ones.

    Raises SignatureError where schema and function contradict each other.
    """
    takes_rest = any(p.kind is Parameter.VAR_KEYWORD for p in own)
    names = {p.name for p in own if p.kind is not Parameter.VAR_KEYWORD}
    needed = {p.name for p in own if p.default is Parameter.empty} & names
    required, properties = (
        set(input_schema.get("required", ())),
        set(input_schema.get("properties", ())),
    )
    if missing := needed - required:
        raise SignatureError(f"the input schema does not require {_listed(missing)}")
    if not takes_rest and (unknown := properties - names):
        raise SignatureError(f"the function does not take {_listed(unknown)} of the input schema")
    if takes_rest:
        return dict
    return lambda arguments: {name: arguments[name] for name in names & arguments.keys()}


def _listed(names: set[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
