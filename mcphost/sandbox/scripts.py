"""Scripts in a worker: the conversation between the interpreter and the server, and the type check before
a script is saved.

The interpreter stops wherever the script calls a function of the server. The worker sends the calls
and waits for answers, or for the word to pause.
"""

import base64
import math
import os
import signal
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic_monty import (
    FunctionSnapshot,
    FutureSnapshot,
    Monty,
    MontyClassProxy,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    MontySession,
    MontySyntaxError,
    MontyTypingError,
    NameLookupSnapshot,
)

Message = dict[str, Any]
Snapshot = FunctionSnapshot | NameLookupSnapshot | FutureSnapshot | MontyComplete

MAX_IMAGE: Final = 16 * 1024 * 1024
PIECE: Final = 64 * 1024
MAX_INTEGER: Final = 2**63
MAX_DEPTH: Final = 100
MAX_TEXT: Final = 4000
SHOWN: Final = 60
"""Characters of a key or a number in a message."""
MAX_CALL: Final = 256 * 1024
"""The arguments of one call of the server, in bytes of JSON."""
DICTIONARY: Final = Path(__file__).with_name("paused.dictionary").read_bytes()
"""What states of scripts have in common. `python -m tests.sandbox.dictionary` writes it. A state that
was packed with another one is replayed, so write it only when the interpreter changes."""
MAX_OWN_DICTIONARY: Final = 12 * 1024
"""Bytes of a script that are in its own dictionary, whose size is limited to 32 KiB."""
SLEEP: Final = "system.sleep"
SLEEP_BESIDE: Final = "system.async_sleep"
"""The calls of `time.sleep` and of `asyncio.sleep`, which are those of functions of the server."""


def packed(state: bytes, dictionary: bytes, max_chars: int = MAX_IMAGE) -> str:
    """Return the state of an interpreter, compressed with a preset dictionary, in Base64.

    Empty if that has more than `max_chars` characters: a large state is compressed only until then. The
    stream names its dictionary (RFC 1950, section 2.2), so another one is never taken for it.
    """
    stream = zlib.compressobj(9, zdict=dictionary)
    compressed = bytearray()
    for at in range(0, len(state), PIECE):
        compressed += stream.compress(state[at : at + PIECE])
        if len(compressed) * 4 // 3 > max_chars:
            return ""
    image = base64.b64encode(compressed + stream.flush()).decode()
    return image if len(image) <= max_chars else ""


def unpacked(image: str, dictionary: bytes) -> bytes:
    """Return the state. Raises ValueError or zlib.error, also for one with another dictionary.

    A state that was compressed without a dictionary can be read, too.
    """
    stream = zlib.decompressobj(zdict=dictionary)
    return stream.decompress(base64.b64decode(image), MAX_IMAGE)


class LastMessageError(Exception):
    """The process must end after this message."""

    def __init__(self, message: Message) -> None:
        self.message = message
        super().__init__()


class NotPlainError(Exception):
    """A value of the script is not JSON."""


def plain(value: Any, depth: int = 0) -> Any:
    """Convert a value of the interpreter to JSON. Types become their names. Raises NotPlainError."""
    if depth > MAX_DEPTH:
        raise NotPlainError("the value is nested too deep")
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return _number(value)
        case list() | tuple() | set() | frozenset():
            return [plain(part, depth + 1) for part in value]
        case dict():
            _check_keys(value)
            return {key: plain(part, depth + 1) for key, part in value.items()}
        case type():
            return {"type": value.__name__}
        case MontyClassProxy(name="Headers", attributes={"_values": dict() as headers}):
            return plain(headers, depth + 1)
        case MontyClassProxy():
            return plain(value.attributes, depth + 1)
        case _:
            name = type(value).__name__
            if name.startswith("Monty"):
                name = "built-in function or type"
            raise NotPlainError(f"the value has a {name}, which is not JSON")


def _check_keys(value: Mapping[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str):
            shown = repr(key)[:SHOWN]
            raise NotPlainError(f"the value has the key {shown}, which is not a text")


def _number(value: int | float) -> int | float:
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        shown = f"{value:#x}"[:SHOWN]  # in decimal, a large one takes long
        raise NotPlainError(f"the value has the integer {shown}, which has more than 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise NotPlainError(f"the value has the number {value}, which is not JSON")
    return value


class ScriptJob:
    """One round of one script. `job` is the message that began it."""

    def __init__(
        self, job: Message, send: Callable[[Message], None], receive: Callable[[], Message]
    ) -> None:
        self._job = job
        self._send = send
        self._receive = receive
        self._now = frozenset(job["now"])
        self._later = frozenset({*job["later"], SLEEP_BESIDE})
        self._answers: dict[str, Any] = job.get("given", {})
        self._calls: list[Message] = []
        self._printed = 0
        self._interpreter = 0
        self._dumps = False
        self._flooded = False

    @property
    def _dictionary(self) -> bytes:
        """What the state of this script has in common with others, and the script itself."""
        own: bytes = self._job["source"].encode()
        return own[-MAX_OWN_DICTIONARY:] + DICTIONARY

    def run(self, monty: Monty) -> Message:
        """Run to the end, or until the server says to pause. Raises LastMessage."""
        options = {"datetime": datetime.fromisoformat(self._job["time"])}
        policy: Any = {**options, "random_start": {"seed": self._job["seed"]}}
        with monty.checkout(
            limits=self._job["limits"], os_policy=policy, print_flush_interval=0.05
        ) as session:
            self._interpreter = session.worker_pid or 0
            try:
                return self._converse(self._begin(session))
            except MontyCrashedError as crash:
                why, text = ("output", "") if self._flooded else ("crash", str(crash))
                raise LastMessageError({"is": "failed", "why": why, "message": text}) from None
            except MontyError as error:
                return failure(error)

    def _begin(self, session: MontySession) -> Snapshot:
        image = self._job.get("image")
        if image is None:
            if self._job["prelude"]:
                session.feed_run(self._job["prelude"], print_callback=self._print)
            inputs = {"_arguments": self._job["arguments"]}
            code = self._job["source"] + "\n\n" + self._job["entry"]
            return session.feed_start(code, inputs=inputs, print_callback=self._print)
        try:
            state = unpacked(image, self._dictionary)
            return session.load_snapshot(state, print_callback=self._print)
        except (MontyError, zlib.error, ValueError) as error:
            raise LastMessageError({"is": "unloadable", "message": str(error)[:MAX_TEXT]}) from None

    def _converse(self, snapshot: Snapshot) -> Message:
        while not isinstance(snapshot, MontyComplete):
            match snapshot:
                case NameLookupSnapshot():
                    snapshot = self._answer_name(snapshot)
                case FunctionSnapshot():
                    outcome = self._answer_call(snapshot)
                    if isinstance(outcome, dict):
                        return outcome
                    snapshot = outcome
                case FutureSnapshot():
                    answers = self._request_answers(snapshot.pending_call_ids)
                    if answers is None:
                        return self._pause(snapshot)
                    snapshot = snapshot.resume({int(id): answer for id, answer in answers.items()})
        try:
            return {"is": "done", "value": plain(snapshot.output)}
        except NotPlainError as error:
            return {"is": "failed", "why": "result", "message": str(error)}

    def _answer_name(self, snapshot: NameLookupSnapshot) -> Snapshot:
        name = snapshot.variable_name
        if snapshot.object_id is not None or name not in self._now | self._later:
            return snapshot.resume()

        def stand_in() -> None: ...

        stand_in.__name__ = name
        return snapshot.resume(value=stand_in)

    def _answer_call(self, snapshot: FunctionSnapshot) -> "Snapshot | Message":
        """Answer a call, or return the message of a pause."""
        name = snapshot.function_name
        if snapshot.is_os_function and name not in (SLEEP, SLEEP_BESIDE):
            return snapshot.resume_not_handled()
        if not snapshot.is_os_function and name not in self._now | self._later:
            return snapshot.resume(
                {"exc_type": "NameError", "message": f"name {name!r} is not defined"}
            )
        if str(snapshot.call_id) in self._answers:  # the call that it was paused in
            return snapshot.resume(self._answers.pop(str(snapshot.call_id)))
        try:
            args = plain([list(snapshot.args), dict(snapshot.kwargs)])
            if len(orjson.dumps(args)) > MAX_CALL:
                raise NotPlainError(f"the arguments have more than {MAX_CALL} bytes")
        except NotPlainError as error:
            return snapshot.resume({"exc_type": "TypeError", "message": f"{name}: {error}"})
        self._calls.append({"id": snapshot.call_id, "name": name, "args": args})
        if name in self._later:
            return snapshot.resume({"future": ...})
        answers = self._request_answers([snapshot.call_id])
        if answers is None:
            return self._pause(snapshot)
        return snapshot.resume(answers[str(snapshot.call_id)])

    def _request_answers(self, pending: list[int]) -> Mapping[str, Any] | None:
        """Return the answers of the server; None if it says to pause."""
        calls, self._calls = self._calls, []
        self._send({"is": "waiting", "calls": calls, "pending": pending})
        reply = self._receive()
        self._dumps = reply.get("dump", False)
        answers: Mapping[str, Any] | None = reply.get("answers")
        return answers

    def _pause(self, snapshot: FunctionSnapshot | FutureSnapshot) -> Message:
        """Return the interpreter's state, compressed; empty if it is not wanted, or too large."""
        state = snapshot.dump() if self._dumps else b""
        if len(state) > MAX_IMAGE:
            state = b""
        max_chars = self._job.get("longest_image", MAX_IMAGE)
        return {
            "is": "paused",
            "image": packed(state, self._dictionary, max_chars) if state else "",
        }

    def _print(self, stream: str, text: str) -> None:
        """Pass output on, up to the limit. A script that prints more loses its interpreter: an
        exception here would be raised only at the script's end."""
        self._printed += len(text)
        if self._printed <= self._job["printed"]:
            self._send({"is": "printed", "text": text})
        elif not self._flooded:
            self._flooded = True
            with suppress(ProcessLookupError):
                os.kill(self._interpreter, signal.SIGKILL)


def failure(error: MontyError) -> Message:
    """Return the message of a script's error: its kind, its text and the lines it came from."""
    inner = error.exception()
    name = type(inner).__name__
    text = str(error)
    frames: list[Message] = []
    if isinstance(error, MontyRuntimeError | MontySyntaxError):
        text = error.display("msg") or ""
        frames = [
            {"line": f.line, "column": f.column, "function": f.function_name or ""}
            for f in error.traceback()[-20:]
        ]
    why = {"MemoryError": "memory", "RecursionError": "recursion"}.get(name, "error")
    if name == "TimeoutError" and "limit exceeded" in text:
        why = "time"
    if isinstance(inner, RuntimeError) and "suspension" in text:
        why = "calls"
    return {
        "is": "failed",
        "why": why,
        "type": name,
        "message": text[:MAX_TEXT],
        "trace": frames,
    }


def check(job: Message, monty: Monty) -> Message:
    """Type-check a script, then run its module level. Returns the problems with their places."""
    problems: list[Message] = []
    with monty.checkout(
        limits=job["limits"],
        type_check=True,
        type_check_stubs=job["stubs"],
        type_check_format="json",
    ) as session:
        try:
            session.feed_run(job["source"], external_lookup={}, print_callback=_drop_output)
        except MontyTypingError as typing_error:
            problems = [
                _problem(diagnostic)
                for diagnostic in orjson.loads(typing_error.display())[: job["most"]]
            ]
        except MontyCrashedError as crash:
            end = {"is": "failed", "why": "crash", "message": str(crash)}
            raise LastMessageError(end) from None
        except MontyError as error:
            details = failure(error)
            at = (details["trace"] or [{"line": 1, "column": 1}])[-1]
            text = f"{details['type']}: {details['message']}"
            problems = [{"line": at["line"], "column": at["column"], "message": text}]
    return {"is": "done", "value": problems}


def _problem(diagnostic: Message) -> Message:
    at = diagnostic["location"]
    return {"line": at["row"], "column": at["column"], "message": diagnostic["message"][:500]}


def _drop_output(stream: str, text: str) -> None:
    return None
