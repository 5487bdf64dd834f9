"""Programs that suggest values: one for each argument that has a function, or a choice, of its own."""

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mcphost.kinds.completing import Choices, completion
from mcphost.kinds.python.function import PythonFunction
from mcphost.kinds.python.parameters import Parameters, is_context
from mcphost.kinds.python.program import PythonProgram
from mcphost.kinds.python.returns import InvalidResult
from mcphost.kinds.python.schemas import SignatureError
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import Program
from mcphost.runtime.schema import Validator

ANYTHING = Validator(schema=True)


class Suggestions:
    """The result of a completer: texts, of which the first hundred are told."""

    def encode(self, value: Any, limit: int, target: str = "") -> dict[str, Any]:
        """Raises InvalidResult for what is no list of texts."""
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not all(isinstance(one, str) for one in values):
            raise InvalidResult("a completer returns a list of texts")
        return completion(values)


class Completer:
    """Completes each argument by its own program; others have no suggestions."""

    def __init__(self, by_argument: Mapping[str, Program]) -> None:
        self._by_argument = by_argument

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        program = self._by_argument.get(call.arguments["argument"]["name"])
        if program is None:
            return Complete(completion(()))
        return await program.advance(call, journal, ports)


def completer_of(offered: PythonFunction) -> Program | None:
    """What answers `completion/complete` for a function; None if it has nothing to suggest.

    Raises SignatureError for a completer that cannot be one.
    """
    names = [argument.name for argument in offered.arguments]
    programs: dict[str, Program] = {
        name: Choices({name: values}) for name, values in offered.choices.items() if values
    }
    for argument, function in getattr(offered.definition, "completers", {}).items():
        if argument not in names:
            raise SignatureError(f"@complete names {argument!r}, which is no argument")
        programs[argument] = PythonProgram(_completing(offered, function))
    return Completer(programs) if programs else None


def _completing(offered: PythonFunction, function: Callable[..., Any]) -> PythonFunction:
    """A completer as a function that is called with what was typed."""
    hints = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters
    context = tuple(name for name in parameters if is_context(hints.get(name)))
    own = [each for name, each in parameters.items() if name not in context]
    if not own:
        raise SignatureError("a completer takes what was typed")
    if bad := next((each.name for each in own[1:] if each.default is each.empty), None):
        raise SignatureError(f"a completer is also asked without {bad!r}, so give a default")
    read = partial(_read, own[0].name, tuple(each.name for each in own[1:]))
    return offered._replace(
        reference=f"{offered.reference}:{function.__name__}",
        function=function,
        parameters=Parameters(ANYTHING, read, context),
        returns=Suggestions(),
        waits=inspect.iscoroutinefunction(inspect.unwrap(function)),
    )


def _read(typed: str, others: tuple[str, ...], arguments: dict[str, Any]) -> dict[str, Any]:
    filled = arguments["context"]["arguments"]
    return {
        typed: arguments["argument"]["value"],
        **{name: filled[name] for name in others if name in filled},
    }
