"""One round of a function: arguments in, an outcome out, and no task left running."""

import asyncio
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from mcphost.kinds.functions.returns import Encoder, InvalidResultError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.json_values import without_lone_surrogates
from mcphost.runtime.call import Call
from mcphost.runtime.deadlines import Deadline, OutOfTimeError
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Failed, Failure, FailureKind, Outcome
from mcphost.runtime.own_cancellations import OwnCancellations
from mcphost.runtime.ports import LinkRefusedError, Ports, StoreRefusedError
from mcphost.runtime.rounds import Round, ThreadLimit
from mcphost.runtime.schema import ArgumentProblem, Validator
from mcphost.runtime.started_coroutine import StartedCoroutine
from mcphost.runtime.threads import PoolExhaustedError
from mcphost.runtime.tool_tasks import Unwound
from mcphost.sdk.context import RUNNING, Context
from mcphost.sdk.errors import CapabilityMissingError, ToolError
from mcphost.sdk.sync import SyncContext

Read = Callable[[dict[str, Any]], dict[str, Any]]

SECONDS = 60.0
MAX_DETAIL = 20_000


class InvalidArgumentsError(Exception):
    """The caller's arguments do not fit; each problem names the field."""

    def __init__(self, problems: tuple[ArgumentProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function. `context` names those that get the call's context."""

    validator: Validator
    read: Read
    context: tuple[str, ...] = ()

    @property
    def schema(self) -> Mapping[str, Any]:
        schema = self.validator.schema
        assert isinstance(schema, Mapping)
        return schema

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return keyword arguments for the function, without the context. Raises InvalidArgumentsError."""
        plain = dict(arguments)
        problems = self.validator.problems(plain)
        if problems:
            raise InvalidArgumentsError(problems)
        return self.read(plain)


class Declared(Protocol):
    """What the author of a function declares of its rounds.

    `requires` are client capabilities. `time_limit` is in seconds, per round. `threads` limits the
    calls of a blocking function that run at once in one tenant.
    """

    @property
    def requires(self) -> Sequence[str]: ...
    @property
    def time_limit(self) -> float | None: ...
    @property
    def threads(self) -> int | None: ...


class RunnableFunction(Protocol):
    """A function that a kind runs. `waits` is true for a coroutine function.

    `reference` names it among all functions.
    """

    @property
    def reference(self) -> str: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def definition(self) -> Declared: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def returns(self) -> Encoder: ...
    @property
    def waits(self) -> bool: ...
    @property
    def primitive_type(self) -> PrimitiveType: ...


class FunctionProgram:
    """Runs one function. Has no state of any call, so one instance may serve all tenants at once.

    The time limit of a round is `ports.limits.seconds`, else the author's, else a minute. A
    function that neither waits nor returns cannot be interrupted: only a thread (a plain `def`) can
    be abandoned.
    """

    __slots__ = ("_primitive_type", "_seconds", "_thread_limit", "_tool")

    def __init__(self, tool: RunnableFunction) -> None:
        self._tool = tool
        self._primitive_type = tool.primitive_type
        self._seconds = tool.definition.time_limit or SECONDS
        self._thread_limit = ThreadLimit(tool.reference, tool.definition.threads)

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Run the function once. All it does becomes an outcome; cancellation passes through.

        Tasks that it leaves behind are cancelled and have ended before the outcome is returned. The
        outcome is the first that applies: a real error, a question without an answer, the call
        becomes a task, the process is shutting down, the function's return value.
        """
        round = Round(call, journal, ports, self._thread_limit)
        context = Context(round)
        tasks = round.tasks
        tasks.enter()
        token = RUNNING.set(context)
        try:
            outcome = await self._outcome(round, context)
        finally:
            RUNNING.reset(token)
            tasks.exit()
            try:
                if tasks.total and tasks.unfinished:
                    await tasks.end()
            finally:
                round.channel.end()
        return outcome or round.stopped_with()

    async def _outcome(self, round: Round, context: Context) -> Outcome | None:
        """Return the function's outcome; None if the round was stopped and there is no real error."""
        own = OwnCancellations()
        outcome: Outcome | None = None
        try:
            for capability in self._tool.definition.requires:
                context.require(capability)
            arguments = self._tool.parameters.bind(round.call.arguments)
            for name in self._tool.parameters.context:
                arguments[name] = context if self._tool.waits else SyncContext(round)
            if self._tool.waits:
                work = self._tool.function(**arguments)
            else:
                work = round.in_thread(partial(self._tool.function, **arguments))
            started: StartedCoroutine[Any] = StartedCoroutine(own.of(work))
            if started.over:
                value = started.value
            else:
                seconds = round.ports.limits.seconds or self._seconds
                round.deadline = Deadline(started, seconds, hurried=self._tool.waits)
                value = await round.deadline.run(resting=round.rests)
            if not round.stopped:
                limit = round.ports.limits.result_bytes
                outcome = self._tool.returns.encode(value, limit, round.call.target)
        except asyncio.CancelledError as error:
            if own.is_cancelled_by_others:
                raise
            outcome = self._failed(error, round)
        except BaseException as error:  # noqa: BLE001 - the function may raise anything
            outcome = self._failed(error, round)
        if own.count:
            await own.undo()
        return outcome

    def _failed(self, error: BaseException, round: Round) -> Outcome | None:
        """Return the outcome of an error; None if nothing but the end of the round caused it."""
        real: BaseException | None = error
        if round.unwinds and isinstance(error, BaseExceptionGroup):
            real = error.split((Unwound, asyncio.CancelledError))[1]
        elif round.unwinds and isinstance(error, Unwound | asyncio.CancelledError):
            real = None
        if isinstance(real, PoolExhaustedError) and round.ports.may_defer():
            return round.deferred()
        return None if real is None else _failed(real, self._primitive_type)


def _failed(error: BaseException, primitive_type: PrimitiveType) -> Outcome:
    """Convert an exception to an outcome. Only messages meant for the caller are sent to the
    caller."""
    match _cause(error):
        case InvalidArgumentsError() as invalid:
            return _meant(
                FailureKind.INVALID_ARGUMENTS, f"Invalid arguments: {invalid}", primitive_type
            )
        case ToolError() | LinkRefusedError() | StoreRefusedError() as refusal:
            return _meant(FailureKind.TOOL_ERROR, str(refusal), primitive_type)
        case CapabilityMissingError() as missing:
            kind, text = FailureKind.CAPABILITY_MISSING, str(missing)
            return Failed(Failure(kind, text, required=missing.required))
        case OutOfTimeError() as late:
            text = f"The {primitive_type} did not finish within {late.seconds:g} seconds."
            return Failed(Failure(FailureKind.TIMED_OUT, text))
        case PoolExhaustedError() as full:
            text = f"The {primitive_type} is busy: all its threads are in use. Try again later."
            return Failed(Failure(FailureKind.OVERLOADED, text, str(full)))
        case InvalidResultError() as wrong:
            text = wrong.message or f"The {primitive_type} returned a result that is not valid."
            return Failed(Failure(FailureKind.INVALID_RESULT, text, wrong.detail))
        case crash:
            text = f"The {primitive_type} failed. The error has been logged."
            trace = "".join(traceback.format_exception(crash))
            detail = trace.encode("utf-8", "backslashreplace").decode()[-MAX_DETAIL:]
            return Failed(Failure(FailureKind.CRASHED, text, detail))


def _cause(error: BaseException) -> BaseException:
    """Return the exception; for a group with only errors meant for the caller, the first of them."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_cause(part) for part in error.exceptions]
    if all(
        isinstance(cause, ToolError | LinkRefusedError | StoreRefusedError | CapabilityMissingError)
        for cause in causes
    ):
        return causes[0]
    return error


def _meant(kind: FailureKind, text: str, primitive_type: PrimitiveType) -> Outcome:
    """Build the outcome for an error that the caller should read.

    For a tool it is a result with the error, for models to learn from (spec: server/tools); prompts
    and resources have no such results. Invalid arguments are a separate failure for every primitive
    type, so that records distinguish them from a tool's own errors; the delivery makes the result
    from it.
    """
    clean = without_lone_surrogates(text)
    if primitive_type is not PrimitiveType.TOOL or kind is FailureKind.INVALID_ARGUMENTS:
        return Failed(Failure(kind, clean))
    return Complete({"content": [{"type": "text", "text": clean}], "isError": True})
