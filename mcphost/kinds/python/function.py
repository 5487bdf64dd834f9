"""A function that is offered, looked at once."""

import inspect
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import PydanticUserError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from mcphost.kinds.python.messages import Contents, Messages
from mcphost.kinds.python.parameters import Hints, Parameters, is_annotated, parameters_of
from mcphost.kinds.python.returns import Encoder, returns_of
from mcphost.kinds.python.schemas import SignatureError
from mcphost.kinds.python.spoken import Choices, Spoken, spoken_in, spoken_of
from mcphost.kinds.sorts import Sort
from mcphost.protocol.mime_types import check_mime_type
from mcphost.protocol.prompts import PromptArgument
from mcphost.sdk import PromptDefinition, ResourceDefinition, SyncContext, ToolDefinition

Definition = ToolDefinition | PromptDefinition | ResourceDefinition

_PYDANTIC = (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError)


class PythonFunction(NamedTuple):
    """What is known of a function. `waits` says that it is a coroutine function.

    `reference` is `<module>.<name>`, the stable way to refer to it. `arguments` and `choices` are
    those of prompts and templates.
    """

    reference: str
    function: Callable[..., Any]
    definition: Definition
    parameters: Parameters
    returns: Encoder
    waits: bool
    arguments: tuple[PromptArgument, ...] = ()
    choices: Choices = {}

    @property
    def sort(self) -> Sort:
        match self.definition:
            case ToolDefinition():
                return Sort.TOOL
            case PromptDefinition():
                return Sort.PROMPT
            case ResourceDefinition(is_template=True):
                return Sort.TEMPLATE
            case _:
                return Sort.RESOURCE

    @property
    def name(self) -> str:
        return self.definition.name or self.reference.rpartition(".")[2]

    @property
    def description(self) -> str:
        """What the author said, or the first paragraph of the docstring in one line."""
        if self.definition.description:
            return self.definition.description
        paragraph = (inspect.getdoc(self.function) or "").partition("\n\n")[0]
        return " ".join(paragraph.split())


def look_at(reference: str, function: Callable[..., Any], definition: Definition) -> PythonFunction:
    """Everything that calls need to know of a function. Raises SignatureError if it cannot be offered."""
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise SignatureError("a function that is offered returns its result, it does not yield")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        spoken, returns = _signature(function, hints, definition)
    except _PYDANTIC as error:
        raise SignatureError(_first_line(error)) from error
    except (NameError, TypeError, ValueError) as error:
        raise SignatureError(f"its signature cannot be read: {_first_line(error)}") from error
    waits = any(map(inspect.iscoroutinefunction, (function, inner)))
    if waits and any(is_annotated(hint, SyncContext) for hint in hints.values()):
        raise SignatureError("an `async def` function takes Context: SyncContext blocks")
    parameters, arguments, choices = spoken
    return PythonFunction(
        reference, function, definition, parameters, returns, waits, arguments, choices
    )


def _signature(
    function: Callable[..., Any], hints: Hints, definition: Definition
) -> tuple[Spoken, Encoder]:
    match definition:
        case ToolDefinition():
            parameters = parameters_of(function, hints, definition.input_schema)
            returns = returns_of(hints.get("return", Any), definition.output_schema)
            return Spoken(parameters, (), {}), returns
        case PromptDefinition():
            return spoken_of(function, hints), Messages()
        case ResourceDefinition():
            if definition.mime_type and (problem := check_mime_type(definition.mime_type)):
                raise SignatureError(problem)
            spoken = spoken_in(definition.uri, spoken_of(function, hints))
            return spoken, Contents(definition.mime_type)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
