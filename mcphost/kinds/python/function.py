"""Inspection of a marked function, done once."""

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from mcphost.kinds.functions.docstrings import Docstring
from mcphost.kinds.functions.program import Parameters
from mcphost.kinds.functions.returns import Encoder, returns_of
from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.messages import ReturnedContents, ReturnedMessages
from mcphost.kinds.python.parameters import Hints, is_annotated, parameters_of
from mcphost.kinds.python.string_arguments import (
    Choices,
    StringArguments,
    arguments_for_uri,
    string_arguments_of,
)
from mcphost.protocol.mime_types import check_mime_type
from mcphost.protocol.prompts import PromptArgument
from mcphost.sdk import (
    Annotations,
    PromptDefinition,
    ResourceDefinition,
    SyncContext,
    ToolAnnotations,
    ToolDefinition,
)

Definition = ToolDefinition | PromptDefinition | ResourceDefinition

_OPTION_TYPES: Final = {
    definition: {
        name: TypeAdapter(hint) for name, hint in typing.get_type_hints(definition).items()
    }
    for definition in (ToolDefinition, PromptDefinition, ResourceDefinition)
}
_PYDANTIC = (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError)


class PythonFunction(NamedTuple):
    """The properties of a marked function. `waits` is true for a coroutine function.

    `reference` is `<module>.<name>`, the stable way to refer to it. `arguments` and `choices` are
    those of prompts and templates. `description` is the author's, or the docstring without what it
    says of parameters that have a schema.
    """

    reference: str
    function: Callable[..., Any]
    definition: Definition
    parameters: Parameters
    returns: Encoder
    waits: bool
    arguments: tuple[PromptArgument, ...] = ()
    choices: Choices = {}
    description: str = ""

    @property
    def primitive_type(self) -> PrimitiveType:
        match self.definition:
            case ToolDefinition():
                return PrimitiveType.TOOL
            case PromptDefinition():
                return PrimitiveType.PROMPT
            case ResourceDefinition(is_template=True):
                return PrimitiveType.TEMPLATE
            case _:
                return PrimitiveType.RESOURCE

    @property
    def name(self) -> str:
        return self.definition.name or self.reference.rpartition(".")[2]


def inspect_function(
    reference: str, function: Callable[..., Any], definition: Definition
) -> PythonFunction:
    """Return everything that calls need of a function. Raises SignatureError if it cannot be
    offered."""
    definition = _with_annotations(definition)
    _check_options(definition)
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise SignatureError("an offered function must return its result, not yield it")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        docstring = Docstring(inspect.getdoc(function) or "")
        signature, returns = _signature(function, hints, definition, docstring)
    except _PYDANTIC as error:
        raise SignatureError(_first_line(error)) from error
    except (NameError, TypeError, ValueError) as error:
        raise SignatureError(f"its signature cannot be read: {_first_line(error)}") from error
    waits = any(map(inspect.iscoroutinefunction, (function, inner)))
    if waits and any(is_annotated(hint, SyncContext) for hint in hints.values()):
        raise SignatureError(
            "an `async def` function must take Context, because SyncContext would block"
        )
    parameters, arguments, choices = signature
    return PythonFunction(
        reference,
        function,
        definition,
        parameters,
        returns,
        waits,
        arguments,
        choices,
        definition.description or docstring.rest,
    )


def _with_annotations(definition: Definition) -> Definition:
    """Return the definition with its annotations as an object, if they are a dict. Raises
    SignatureError for values of a wrong type."""
    match definition:
        case ToolDefinition(annotations=Mapping() as annotations):
            model: type[BaseModel] = ToolAnnotations
        case ResourceDefinition(annotations=Mapping() as annotations):
            model = Annotations
        case _:
            return definition
    try:
        read = model.model_validate(dict(annotations), strict=True)
    except ValidationError as error:
        raise SignatureError(_problem("annotations", error)) from None
    return replace(definition, annotations=read)  # type: ignore[arg-type]


def _check_options(definition: Definition) -> None:
    """Raise SignatureError for an option of a wrong type."""
    for name, adapter in _OPTION_TYPES[type(definition)].items():
        try:
            adapter.validate_python(getattr(definition, name), strict=True)
        except ValidationError as error:
            raise SignatureError(_problem(name, error)) from None


def _problem(name: str, error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, (name, *problem['loc'])))}: {problem['msg']}"


def _signature(
    function: Callable[..., Any], hints: Hints, definition: Definition, docstring: Docstring
) -> tuple[StringArguments, Encoder]:
    match definition:
        case ToolDefinition():
            parameters = parameters_of(function, hints, docstring, definition.input_schema)
            returns = returns_of(hints.get("return", Any), definition.output_schema)
            return StringArguments(parameters, (), {}), returns
        case PromptDefinition():
            return string_arguments_of(function, hints, docstring), ReturnedMessages()
        case ResourceDefinition():
            if definition.mime_type and (problem := check_mime_type(definition.mime_type)):
                raise SignatureError(problem)
            # The variables of a template have no descriptions, so their texts stay in its own.
            typed = string_arguments_of(function, hints, Docstring(""))
            arguments = arguments_for_uri(definition.uri, typed)
            return arguments, ReturnedContents(definition.mime_type)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
