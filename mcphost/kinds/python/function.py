"""A function that is offered as a tool, looked at once."""

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import PydanticUserError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from mcphost.kinds.python.parameters import Parameters, parameters_of
from mcphost.kinds.python.returns import Returns, returns_of
from mcphost.kinds.python.schemas import SignatureError
from mcphost.sdk import ToolDefinition

_PYDANTIC = (PydanticUserError, PydanticInvalidForJsonSchema, PydanticSchemaGenerationError)


@dataclass(frozen=True, slots=True)
class ToolFunction:
    """What is known of a function. `waits` says that it is a coroutine function.

    `reference` is `<module>.<name>`, the stable way to refer to it.
    """

    reference: str
    function: Callable[..., Any]
    definition: ToolDefinition
    parameters: Parameters
    returns: Returns
    waits: bool

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


def look_at(
    reference: str, function: Callable[..., Any], definition: ToolDefinition
) -> ToolFunction:
    """Everything that calls need to know of a function. Raises SignatureError if it cannot be a tool."""
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise SignatureError("a tool returns its result, it does not yield")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = parameters_of(function, hints, definition.input_schema)
        returns = returns_of(hints.get("return", Any), definition.output_schema)
    except _PYDANTIC as error:
        raise SignatureError(_first_line(error)) from error
    except (NameError, TypeError, ValueError) as error:
        raise SignatureError(f"its signature cannot be read: {_first_line(error)}") from error
    waits = any(map(inspect.iscoroutinefunction, (function, inner)))
    return ToolFunction(reference, function, definition, parameters, returns, waits)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
