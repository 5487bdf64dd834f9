"""Helpers that run one round of a function and record its notifications."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid4

from mcphost.kinds.functions.program import FunctionProgram
from mcphost.kinds.python.function import PythonFunction, inspect_function
from mcphost.protocol.revisions import REVISION, Era
from mcphost.runtime.call import Call, Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete, Failed, Failure, Outcome
from mcphost.runtime.ports import FixedPorts, Ports, RoundLimits
from mcphost.runtime.program import Program
from mcphost.runtime.threads import ToolThreads
from mcphost.sdk import tool
from mcphost.sdk.marking import ATTRIBUTE

TENANT = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")


class Notes:
    """A notifier that records its calls."""

    def __init__(self) -> None:
        self.progressed: list[tuple[float, float | None, str | None]] = []
        self.logged: list[tuple[str, Any, str | None]] = []

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progressed.append((progress, total, message))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        self.logged.append((level, data, logger))


def a_call(arguments: Mapping[str, Any] | None = None, **capabilities: Any) -> Call:
    """Build a call by a client with these capabilities."""
    return Call(
        id=uuid4(),
        tenant=TENANT,
        principal=Principal(PrincipalKind.TOKEN, TENANT, id="t1", label="Ada's laptop"),
        method="tools/call",
        target="tool",
        arguments=arguments or {},
        client=Client("Inspector", "1.0", capabilities),
        revision=REVISION,
        era=Era.MODERN,
        delivery=Delivery.MODERN,
    )


def ports(notes: Notes | None = None, threads: ToolThreads | None = None, **limits: Any) -> Ports:
    """Return ports with a pool of four threads, unless another is given."""
    return FixedPorts(
        threads=threads or ToolThreads(4), notifier=notes or Notes(), limits=RoundLimits(**limits)
    )


def seen(function: Callable[..., Any]) -> PythonFunction:
    """Inspect a function as the kind does, marked as a tool if it has no mark."""
    marked = function if hasattr(function, ATTRIBUTE) else tool(function)
    return inspect_function(f"tests.{function.__name__}", marked, getattr(marked, ATTRIBUTE))


def program(function: Callable[..., Any]) -> Program:
    return FunctionProgram(seen(function))


async def outcome(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    outside: Ports | None = None,
) -> Outcome:
    """Run one round of a function as a tool."""
    return await program(function).advance(a_call(arguments), EMPTY, outside or ports())


async def result(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    outside: Ports | None = None,
) -> Mapping[str, Any]:
    """Return the result of a round that must complete."""
    ended = await outcome(function, arguments, outside)
    assert isinstance(ended, Complete), ended
    return ended.result


async def refusal(function: Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> str:
    """Return the text of a result that must be an error."""
    ended = await result(function, arguments)
    assert ended["isError"] is True
    text: str = ended["content"][0]["text"]
    return text


async def failure(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    outside: Ports | None = None,
) -> Failure:
    """Return the failure of a round that must fail."""
    ended = await outcome(function, arguments, outside)
    assert isinstance(ended, Failed), ended
    return ended.error
