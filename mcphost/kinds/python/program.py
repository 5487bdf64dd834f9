"""One round of a Python tool: arguments in, an outcome out, and nothing left running."""

import asyncio
import traceback
from functools import partial
from typing import Any

from mcphost.kinds.python.function import PythonFunction
from mcphost.kinds.python.parameters import InvalidArguments
from mcphost.kinds.python.returns import InvalidResult
from mcphost.kinds.sorts import Sort
from mcphost.runtime.begun import Begun
from mcphost.runtime.call import Call
from mcphost.runtime.children import Unwound
from mcphost.runtime.deadlines import Deadline, OutOfTime
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Failed, Failure, FailureKind, Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.rounds import Place, Round
from mcphost.runtime.threads import PoolExhausted
from mcphost.sdk.context import RUNNING, Context
from mcphost.sdk.errors import CapabilityMissing, ToolError
from mcphost.sdk.sync import SyncContext

SECONDS = 60.0
MOST_DETAIL = 20_000


class PythonProgram:
    """Runs one function. Holds no state of any call, so one may serve all tenants at once.

    `ports.limits.seconds` bounds a round, else what the author said, else a minute. A function that
    neither waits nor returns cannot be interrupted: only a thread (a plain `def`) can be given up.
    """

    __slots__ = ("_place", "_seconds", "_sort", "_tool")

    def __init__(self, tool: PythonFunction) -> None:
        self._tool = tool
        self._sort = tool.sort
        self._seconds = tool.definition.time_limit or SECONDS
        self._place = Place(tool.reference, tool.definition.threads)

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Run the function once. Whatever it does becomes an outcome; cancellation passes through.

        Tasks that it leaves behind are cancelled and have ended before the outcome leaves. A real
        error counts more than a question without an answer, that more than that the process is
        leaving, and all of these more than what the function returned.
        """
        round = Round(call, journal, ports, self._place)
        context = Context(round)
        children = round.children
        children.enter()
        token = RUNNING.set(context)
        try:
            outcome = await self._outcome(round, context)
        finally:
            RUNNING.reset(token)
            children.leave()
            try:
                if children.total and children.left:
                    await children.end()
            finally:
                round.line.end()
        return outcome or round.stopped_with()

    async def _outcome(self, round: Round, context: Context) -> Outcome | None:
        """What came of the function; None if nothing that counts, because the round was stopped."""
        try:
            for capability in self._tool.definition.requires:
                context.require(capability)
            arguments = self._tool.parameters.bind(round.call.arguments)
            for name in self._tool.parameters.context:
                arguments[name] = context if self._tool.waits else SyncContext(round)
            value = await self._limited(arguments, round)
            if round.stopped:
                return None
            limit = round.ports.limits.result_bytes
            return Complete(self._tool.returns.encode(value, limit, round.call.target))
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            return self._failed(error, round)
        except BaseException as error:  # noqa: BLE001 - the function may raise anything
            return self._failed(error, round)

    def _failed(self, error: BaseException, round: Round) -> Outcome | None:
        real = _without_unwinding(error) if round.unwinds else error
        return None if real is None else _failed(real, self._sort)

    async def _limited(self, arguments: dict[str, Any], round: Round) -> Any:
        """The function's value. Raises OutOfTime if its time was up, whatever it made of that."""
        begun = Begun(self._run(arguments, round))
        if begun.over:
            return begun.value
        seconds = round.ports.limits.seconds or self._seconds
        round.deadline = Deadline(begun, seconds, hurried=self._tool.waits)
        return await round.deadline.run(resting=round.rests)

    async def _run(self, arguments: dict[str, Any], round: Round) -> Any:
        if self._tool.waits:
            return await self._tool.function(**arguments)
        return await round.in_thread(partial(self._tool.function, **arguments))


def _without_unwinding(error: BaseException) -> BaseException | None:
    """What is left of an error when the round's own end is taken out of it, or None."""
    if isinstance(error, BaseExceptionGroup):
        return error.split((Unwound, asyncio.CancelledError))[1]
    return None if isinstance(error, Unwound | asyncio.CancelledError) else error


def _is_being_cancelled() -> bool:
    """Whether somebody cancelled this round, rather than the tool having met a cancelled task."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _failed(error: BaseException, sort: Sort) -> Outcome:
    """What an exception means. Only what its author meant for the caller is told to the caller."""
    match _cause(error):
        case InvalidArguments() as invalid:
            return _meant(FailureKind.INVALID_ARGUMENTS, f"Invalid arguments: {invalid}", sort)
        case ToolError() as refusal:
            return _meant(FailureKind.TOOL_ERROR, str(refusal), sort)
        case CapabilityMissing() as missing:
            kind, text = FailureKind.CAPABILITY_MISSING, str(missing)
            return Failed(Failure(kind, text, required=missing.required))
        case OutOfTime() as late:
            text = f"The {sort} did not finish within {late.seconds:g} seconds."
            return Failed(Failure(FailureKind.TIMED_OUT, text))
        case PoolExhausted() as full:
            text = f"The {sort} is busy: all its threads are in use. Try again later."
            return Failed(Failure(FailureKind.OVERLOADED, text, str(full)))
        case InvalidResult() as wrong:
            text = wrong.message or f"The {sort} returned a result that is not valid."
            return Failed(Failure(FailureKind.INVALID_RESULT, text, wrong.detail))
        case crash:
            text = f"The {sort} failed. What went wrong has been logged."
            return Failed(Failure(FailureKind.CRASHED, text, _told(crash)))


def _cause(error: BaseException) -> BaseException:
    """The exception itself; of a group, what its author meant for the caller, if it is that alone."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_cause(part) for part in error.exceptions]
    if all(isinstance(cause, ToolError | CapabilityMissing) for cause in causes):
        return causes[0]
    return error


def _meant(kind: FailureKind, text: str, sort: Sort) -> Outcome:
    """What is meant for the caller: of a tool a result that says what went wrong, for models to
    learn from (spec: server/tools); prompts and resources have no such results."""
    clean = text.encode("utf-8", "backslashreplace").decode()
    if sort is not Sort.TOOL:
        return Failed(Failure(kind, clean))
    return Complete({"content": [{"type": "text", "text": clean}], "isError": True})


def _told(error: BaseException) -> str:
    """Exception and traceback for the log, the end of it if it is long."""
    text = "".join(traceback.format_exception(error))
    return text.encode("utf-8", "backslashreplace").decode()[-MOST_DETAIL:]
