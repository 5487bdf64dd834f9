"""Programs that suggest values: for each argument its own function, or a list of choices."""

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mcphost.kinds.completing import Choices, completion
from mcphost.kinds.functions.program import FunctionProgram, Parameters
from mcphost.kinds.functions.returns import InvalidResultError
from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.python.function import PythonFunction
from mcphost.kinds.python.parameters import is_context
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import Program
from mcphost.runtime.schema import Validator


class Suggestions:
    """The result of a completer: strings, of which the first hundred are sent."""

    def encode(self, value: Any, limit: int, target: str = "") -> Complete:
        """Encode the result. Raises InvalidResultError if it is not a list of strings."""
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not all(isinstance(choice, str) for choice in values):
            raise InvalidResultError("a completer returns a list of texts")
        return Complete(completion(values))


class Completer:
    """Completes each argument with its own program; other arguments get no suggestions."""

    def __init__(self, by_argument: Mapping[str, Program]) -> None:
        self._by_argument = by_argument

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        program = self._by_argument.get(call.arguments["argument"]["name"])
        if program is None:
            return Complete(completion(()))
        return await program.advance(call, journal, ports)


def completer_of(offered: PythonFunction) -> Program | None:
    """Return the program that answers `completion/complete` for a function; None if it suggests
    nothing.

    Raises SignatureError for an invalid completer.
    """
    names = [argument.name for argument in offered.arguments]
    programs: dict[str, Program] = {
        name: Choices({name: values}) for name, values in offered.choices.items() if values
    }
    for argument, function in getattr(offered.definition, "completers", {}).items():
        if argument not in names:
            raise SignatureError(f"@complete: there is no argument {argument!r}")
        programs[argument] = FunctionProgram(_completing(offered, function))
    return Completer(programs) if programs else None


def _completing(offered: PythonFunction, function: Callable[..., Any]) -> PythonFunction:
    """Wrap a completer as a function that is called with the typed text."""
    hints = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters
    context = tuple(name for name in parameters if is_context(hints.get(name)))
    own = [parameter for name, parameter in parameters.items() if name not in context]
    if not own:
        raise SignatureError("a completer needs a parameter for the typed text")
    if bad := next(
        (parameter.name for parameter in own[1:] if parameter.default is parameter.empty), None
    ):
        raise SignatureError(f"a completer is also called without {bad!r}, so give it a default")
    read = partial(_read_arguments, own[0].name, tuple(parameter.name for parameter in own[1:]))
    return offered._replace(
        reference=f"{offered.reference}:{function.__name__}",
        function=function,
        parameters=Parameters(Validator(schema=True), read, context),
        returns=Suggestions(),
        waits=inspect.iscoroutinefunction(inspect.unwrap(function)),
    )


def _read_arguments(
    typed: str, argument_names: tuple[str, ...], arguments: dict[str, Any]
) -> dict[str, Any]:
    filled = arguments["context"]["arguments"]
    return {
        typed: arguments["argument"]["value"],
        **{name: filled[name] for name in argument_names if name in filled},
    }
