"""One round of a script: the conversation with its worker, and the outcome."""

import asyncio
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final

import orjson

from mcphost.kinds.script.addresses import CallerTexts
from mcphost.kinds.script.functions import CallOverError, Functions, ScriptCallError, refusal
from mcphost.kinds.script.requests import Requests
from mcphost.kinds.script.signature import Signature
from mcphost.kinds.script.surroundings import LATER, NOW, prelude
from mcphost.protocol.json_values import digest
from mcphost.runtime.call import Call
from mcphost.runtime.history import MISSING
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import (
    Complete,
    Deferred,
    Failed,
    Failure,
    FailureKind,
    InputRequired,
    Outcome,
)
from mcphost.runtime.ports import Ports
from mcphost.runtime.rounds import Round
from mcphost.runtime.schema import Validator
from mcphost.runtime.tool_tasks import Unwound
from mcphost.sandbox.frames import BrokenFrameError
from mcphost.sandbox.pool import Sandbox, SandboxFullError
from mcphost.sandbox.processes import SandboxWorker, WorkerLostError

SECONDS: Final = 60.0
TURN_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 2.0
"""How much longer than its limit a worker may take until it is killed."""
MAX_ATTEMPTS: Final = 3
"""How many workers are tried for one round, when those before it have done nothing of it."""
MAX_DETAIL: Final = 20_000
MAX_REASON: Final = 500
"""The characters of what is wrong with a result, in the error for the caller."""
MAX_PRINTED: Final = 64 * 1024
MAX_COMPRESSED_IMAGE: Final = 40_000
"""In characters. A request state has 64 KiB for it, and for all that is recorded besides."""
LIMITS: Final[Mapping[str, Any]] = {
    "max_feed_duration_secs": 10.0,
    "max_turn_duration_secs": TURN_SECONDS,
    "max_memory": 64 * 1024 * 1024,
    "max_recursion_depth": 200,
    "max_suspensions": 1000,
}

_EXPLAINED: Final = {
    "time": (FailureKind.TIMED_OUT, "The tool computed for too long."),
    "memory": (FailureKind.CRASHED, "The tool used too much memory."),
    "recursion": (FailureKind.CRASHED, "The tool called itself too often."),
    "output": (FailureKind.CRASHED, "The tool printed or returned too much."),
    "calls": (FailureKind.CRASHED, "The tool called the server too often."),
    "result": (
        FailureKind.INVALID_RESULT,
        "The tool returned a result that is not valid: {reason}.",
    ),
}
SANDBOX: Final = version("pydantic-monty")
_FAILED: Final = "The tool failed. The error has been logged."

log = logging.getLogger(__name__)


class UnloadableError(Exception):
    """A paused script cannot be continued here."""


@dataclass(frozen=True)
class Script:
    """A compiled script. `source` is the author's, `signature` that of its function."""

    source: str
    signature: Signature

    @cached_property
    def digest(self) -> str:
        """Identify what a paused script can be continued by: its code, and the interpreter."""
        return digest([self.source, self.prelude, LATER, NOW, SANDBOX])

    @cached_property
    def prelude(self) -> str:
        """The code that runs before it."""
        return prelude(self.source, waits=self.signature.waits)

    @cached_property
    def entry(self) -> str:
        """The code that calls the function."""
        wait = "await " if self.signature.waits else ""
        return f"{wait}{self.signature.name}(**_arguments)"

    @cached_property
    def arguments(self) -> Validator:
        return Validator(self.signature.input_schema)

    @cached_property
    def results(self) -> Validator | None:
        schema = self.signature.output_schema
        return None if schema is None else Validator(schema)


class ScriptProgram:
    """Runs one script. Has no state of any call.

    Where the script asks, its interpreter is stopped, and its state goes into the journal. The next
    round continues there, in any process. If it cannot (the script or the sandbox has changed, or
    the state was too large), the script runs again from the top, with what the journal has.
    """

    def __init__(self, script: Script, sandbox: Sandbox) -> None:
        self._script = script
        self._sandbox = sandbox

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Run one round. All that the script does becomes an outcome; cancellation passes through,
        and kills the worker."""
        problems = self._script.arguments.problems(call.arguments)
        if problems:
            text = f"Invalid arguments: {'; '.join(map(str, problems))}"
            return Failed(Failure(FailureKind.INVALID_ARGUMENTS, text))
        seconds = ports.limits.seconds or SECONDS
        try:
            async with asyncio.timeout(seconds):
                return await self._advance(call, journal, ports)
        except TimeoutError:
            text = f"The tool did not finish within {seconds:g} seconds."
            return Failed(Failure(FailureKind.TIMED_OUT, text))
        except SandboxFullError as full:
            if ports.may_defer():
                return Deferred(journal, instead_of_refusal=True)
            reason = (
                "too many scripts of this tenant run" if full.of_tenant else "the server is full"
            )
            text = f"The tool is busy: {reason}. Try again later."
            return Failed(Failure(FailureKind.OVERLOADED, text, str(full)))
        except WorkerLostError as lost:
            kind = FailureKind.TIMED_OUT if lost.late else FailureKind.CRASHED
            return Failed(Failure(kind, _FAILED, str(lost)))
        except Exception:  # noqa: BLE001 - a worker that was taken over may send anything
            detail = traceback.format_exc()[-MAX_DETAIL:]
            return Failed(Failure(FailureKind.CRASHED, _FAILED, detail))

    async def _advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        paused = journal.paused
        if paused is not None and paused.get("of") != self._script.digest:
            paused = None
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return await self._round(call, journal, ports, paused)
            except UnloadableError as why:
                log.warning("a paused script is replayed, because it cannot be loaded: %s", why)
                paused = None
            except WorkerLostError as lost:  # an idle worker may have died at any time
                if not lost.unheard:
                    raise
        return await self._round(call, journal, ports, paused)

    async def _round(
        self, call: Call, journal: Journal, ports: Ports, paused: Mapping[str, Any] | None
    ) -> Outcome:
        round = Round(call, journal, ports)
        round.tasks.enter()
        try:
            async with self._sandbox.worker(str(call.tenant)) as worker:
                return await ScriptRound(self._script, round, worker).hold(paused)
        except CallOverError as end:
            return end.outcome
        except Unwound:  # the process is shutting down, and a step has been recorded
            return round.stopped_with()
        finally:
            round.tasks.exit()
            if round.tasks.unfinished:
                await round.tasks.end()
            round.channel.end()


class ScriptRound:
    """One round of a script in one worker."""

    def __init__(self, script: Script, round: Round, worker: SandboxWorker) -> None:
        self._script = script
        self._round = round
        self._worker = worker
        recording = round.recording
        # Drawn first in every round, so they are the same in all rounds of the call.
        self._time = recording.now()
        self._seed = recording.uuid()
        answers = [
            answer.result
            for key_answers in round.journal.answers.values()
            for answer in key_answers
        ]
        texts = CallerTexts(script.source, [round.call.arguments, answers])
        requests = Requests(round.ports, recording.uuid().hex, texts)
        self._functions = Functions(round, requests)
        self._calls: dict[int, list[Any]] = {}
        self._begun: set[int] = set()
        self._settled: dict[int, dict[str, Any]] = {}
        self._running: dict[int, asyncio.Task[Any]] = {}

    async def hold(self, paused: Mapping[str, Any] | None) -> Outcome:
        """Let the script run until it ends or asks.

        Raises CallOverError; Unwound; WorkerLostError; Unloadable, if `paused` cannot be continued.
        """
        answers = {} if paused is None else self._continue(paused)
        try:
            await self._worker.begin({**self._job(paused), "given": answers})
        except BrokenFrameError as error:
            return _failed({"why": "output", "message": f"the arguments: {error}"})
        message = await self._receive()
        if message["is"] == "unloadable":
            raise UnloadableError(message["message"])
        while message["is"] == "waiting":
            message = await self._answered(message)
        return self._outcome(message)

    def _job(self, paused: Mapping[str, Any] | None) -> dict[str, Any]:
        return {
            "do": "script",
            "source": self._script.source,
            "prelude": self._script.prelude,
            "entry": self._script.entry,
            "arguments": self._round.call.arguments,
            "image": None if paused is None else paused["image"],
            "now": [*NOW] if self._script.signature.waits else [*NOW, *LATER],
            "later": [*LATER] if self._script.signature.waits else [],
            "limits": dict(LIMITS),
            "longest_image": MAX_COMPRESSED_IMAGE,
            "time": self._time.isoformat(),
            "seed": self._seed.hex,
            "printed": MAX_PRINTED,
        }

    def _continue(self, paused: Mapping[str, Any]) -> dict[str, Any]:
        """Continue what is recorded. Returns the answer that the script waits for, by its call, so
        that the worker need not ask for it: of a plain `def`, which has one call at a time.

        Raises CallOverError.
        """
        self._round.recording.continue_from(paused["position"])
        self._functions.sent = paused["sent"]
        self._functions.refusals.update(paused["refusals"])
        self._calls = {int(id): call for id, call in paused["calls"].items()}
        if self._script.signature.waits:
            return {}
        for id in self._calls:
            self._begin(id)
        answers = {str(id): self._settled.pop(id) for id in list(self._settled)}
        self._calls = {id: call for id, call in self._calls.items() if str(id) not in answers}
        return answers

    async def _receive(self) -> dict[str, Any]:
        while True:
            message = await self._worker.receive(TURN_SECONDS + PATIENCE_SECONDS)
            if message["is"] != "printed":
                return message
            self._functions.send_output(message["text"])

    async def _answered(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the calls of a script that waits, or pause it if only the caller can answer."""
        for call in message["calls"]:
            self._calls[call["id"]] = [call["name"], call["args"]]
        try:
            for id in self._calls.keys() - self._begun:
                self._begin(id)
        except CallOverError:
            await self._worker.reply({"answers": None})
            await self._receive()  # so that the worker can be used again
            raise
        answers = await self._ready(message["pending"])
        for answered in answers:
            del self._calls[int(answered)]
        try:
            if answers:
                await self._worker.reply({"answers": answers})
            else:
                await self._worker.reply({"answers": None, "dump": True})
        except BrokenFrameError as error:
            return {"is": "failed", "why": "output", "message": str(error)}
        return await self._receive()

    def _begin(self, id: int) -> None:
        """Begin a call. A question without an answer remains unsettled. Raises CallOverError."""
        self._begun.add(id)
        name, args = self._calls[id]
        try:
            value = self._functions.call(name, args)
        except ScriptCallError as error:
            self._settled[id] = _exception(error)
        else:
            if asyncio.iscoroutine(value):
                self._running[id] = asyncio.create_task(value, name=name)
            elif value is not MISSING:
                self._settled[id] = {"return_value": value}

    async def _ready(self, pending: list[int]) -> dict[str, Any]:
        """Return the answers that there are, of at least one call; none if only the caller can
        answer."""
        while True:
            self._collect()
            ready = {str(id): self._settled.pop(id) for id in pending if id in self._settled}
            running = [self._running[id] for id in pending if id in self._running]
            if ready or not running:
                return ready
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)

    def _collect(self) -> None:
        for id, task in list(self._running.items()):
            if task.done():
                del self._running[id]
                try:
                    self._settled[id] = {"return_value": task.result()}
                except ScriptCallError as error:
                    self._settled[id] = _exception(error)

    def _outcome(self, message: Mapping[str, Any]) -> Outcome:
        if message["is"] == "paused":
            return self._input_required(message["image"])
        if message["is"] == "done":
            if self._round.stopped:  # it has asked, and did not wait for the answer
                return self._round.stopped_with()
            return self._result(message["value"])
        if message.get("type") == "RuntimeError" and message["message"] in self._functions.refusals:
            return refusal(message["message"])
        return _failed(message)

    def _input_required(self, image: str) -> Outcome:
        """Return the questions, with the paused script in the journal if it is small enough."""
        outcome = self._round.stopped_with()
        if not isinstance(outcome, InputRequired) or not 0 < len(image) <= MAX_COMPRESSED_IMAGE:
            return outcome
        paused = {
            "of": self._script.digest,
            "image": image,
            "calls": {str(id): call for id, call in self._calls.items()},
            "position": self._round.recording.position(),
            "sent": self._functions.sent,
            "refusals": sorted(self._functions.refusals),
        }
        journal = outcome.journal
        kept = Journal(journal.answers, journal.recorded, journal.progress, paused)
        return InputRequired(outcome.requests, kept, outcome.invalid)

    def _result(self, value: Any) -> Outcome:
        validator = self._script.results
        problems = validator.problems(value) if validator is not None else ()
        if problems:
            return _failed({"why": "result", "message": "; ".join(map(str, problems))})
        if isinstance(value, str) and validator is None:
            result: dict[str, Any] = {"content": [{"type": "text", "text": value}]}
        elif value is None and validator is None:
            result = {"content": []}
        else:
            text = orjson.dumps(value).decode()
            result = {"content": [{"type": "text", "text": text}], "structuredContent": value}
        size = len(orjson.dumps(result))
        limit = self._round.ports.limits.result_bytes
        if size > limit:
            text = f"The result is too large: more than {limit} bytes."
            return Failed(Failure(FailureKind.INVALID_RESULT, text, f"{size} bytes"))
        return Complete(result, size)


def _exception(error: ScriptCallError) -> dict[str, Any]:
    return {"exc_type": error.type, "message": error.message}


def _failed(message: Mapping[str, Any]) -> Failed:
    """Return the failure of a script. Its own error is for the log only; what is wrong with a result is
    for the caller, who would have got it."""
    kind, text = _EXPLAINED.get(message["why"], (FailureKind.CRASHED, _FAILED))
    reason = str(message.get("message", ""))[:MAX_REASON].rstrip(".")
    text = text.replace("{reason}", reason)
    lines = [f"line {at['line']} in {at['function']}" for at in message.get("trace", ())]
    detail = f"{message.get('type', message['why'])}: {message.get('message', '')}"
    return Failed(Failure(kind, text, "\n".join([*lines, detail])))
