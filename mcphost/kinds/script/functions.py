"""The functions of the server that a script may call, in one round."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from types import MethodType
from typing import Any, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import orjson

from mcphost.egress.errors import EgressError
from mcphost.kinds.script.requests import NAME, Requests
from mcphost.protocol.json_values import without_lone_surrogates
from mcphost.runtime.history import MISSING, ChangedProgramError
from mcphost.runtime.outcomes import Complete, Failed, Failure, FailureKind, Outcome
from mcphost.runtime.questions import (
    CapabilityMissingError,
    Question,
    QuestionRefusedError,
    UnansweredError,
)
from mcphost.runtime.rounds import Round
from mcphost.runtime.steps import MisusedError
from mcphost.sdk import questions
from mcphost.sdk.context import accepted, agreed
from mcphost.sdk.errors import ToolError, answer_error

MAX_REQUESTS: Final = 50
"""How many HTTP requests one call may send."""
MAX_SENT_BYTES: Final = 256 * 1024
"""How much a script may print, log and report in one round, in bytes."""
MAX_SLEEP: Final = 10.0
SLEEPS: Final = ("system.sleep", "system.async_sleep")

_TYPES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}

log = logging.getLogger(__name__)


class ScriptCallError(Exception):
    """An exception to be raised in the sandbox."""

    def __init__(self, type: str, message: str) -> None:
        self.type = type
        self.message = message
        super().__init__(message)


class CallOverError(Exception):
    """The call ends here, whatever the script would do."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__()


class Functions:
    """What `elicit`, `http.get` and the others do. `refusals` are the texts that callers may read
    when a script does not catch them."""

    def __init__(self, round: Round, requests: Requests) -> None:
        self._round = round
        self._requests = requests
        self.sent = 0
        self._sent_bytes = 0
        self.refusals: set[str] = set()
        self._here: Mapping[str, Any] = {
            "elicit": self._elicit,
            "elicit_url": self._elicit_url,
            "ask": self._ask,
            "sample": self._sample,
            "secret": self._secret,
            "progress": self._progress,
            "log": self._log,
            "fail": self._fail,
            "_offset": self._offset,
        }
        self._waiting: Mapping[str, Any] = {
            "_http": self._http,
            **dict.fromkeys(SLEEPS, self._sleep),
        }

    def call(self, name: str, args: list[Any]) -> Any:
        """Return the value of a call: MISSING for a question that must be asked, an awaitable for a
        call that takes time. Raises Raised, CallOverError."""
        function: MethodType = self._here.get(name) or self._waiting[name]
        try:
            bound = _signature(function.__func__).bind(self, *args[0], **args[1])
        except TypeError as error:
            raise ScriptCallError("TypeError", f"{name.strip('_')}(): {error}") from None
        try:
            return function.__func__(*bound.args, **bound.kwargs)
        except (QuestionRefusedError, MisusedError, ChangedProgramError) as error:
            raise ScriptCallError("RuntimeError", str(error)) from None
        except CapabilityMissingError as missing:
            failure = Failure(
                FailureKind.CAPABILITY_MISSING, str(missing), required=missing.required
            )
            raise CallOverError(Failed(failure)) from None
        except UnansweredError as why:
            raise self._refused(answer_error(why)) from None
        except ToolError as refusal:
            raise self._refused(refusal) from None

    def send_output(self, text: str) -> None:
        """Send what the script has printed. Raises CallOverError."""
        self._count(text)
        self._round.channel.log("info", text, "print")

    def _count(self, *values: Any) -> None:
        """Count what is sent to the caller. Raises CallOverError once it is too much."""
        self._sent_bytes += len(orjson.dumps(values))
        if self._sent_bytes > MAX_SENT_BYTES:
            text = "The tool printed or returned too much."
            raise CallOverError(
                Failed(Failure(FailureKind.CRASHED, text, f"{self._sent_bytes} bytes"))
            )

    def _refused(self, refusal: ToolError) -> ScriptCallError:
        self.refusals.add(str(refusal))
        return ScriptCallError("RuntimeError", str(refusal))

    def _elicit(self, key: str, message: str, fields: Any) -> Any:
        answer = self._form(key, message, fields)
        return answer if answer is MISSING else accepted(key, answer)

    def _elicit_url(self, key: str, message: str, url: str) -> Any:
        """Ask the user to open a page. The answer is consent only, so there is no value."""
        answer = self._answer(questions.url(key, message, url))
        return answer if answer is MISSING else agreed(key, answer)

    def _ask(self, key: str, message: str, fields: Any) -> Any:
        answer = self._form(key, message, fields)
        return answer if answer is MISSING else {"action": answer.action, "content": answer.content}

    def _form(self, key: str, message: str, fields: Any) -> Any:
        return self._answer(questions.form(key, message, form_schema(fields)))

    def _sample(
        self, key: str, prompt: str, *, max_tokens: int = 1000, system: str | None = None
    ) -> Any:
        options: Any = {} if system is None else {"system_prompt": system}
        sampled = self._answer(questions.sampling(key, prompt, max_tokens=max_tokens, **options))
        if sampled is MISSING:
            return sampled
        return getattr(sampled.content, "text", "")

    def _answer(self, question: Question[Any]) -> Any:
        return self._round.recording.answer(question)

    def _secret(self, name: str) -> str:
        if not isinstance(cast(Any, name), str) or NAME.fullmatch(name) is None:
            raise ScriptCallError("ValueError", f"{name!r} is not the name of a secret")
        return self._requests.handle(name)

    def _progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        self._count(message)
        try:
            self._round.channel.progress(progress, total, message)
        except (ValueError, TypeError) as error:
            raise ScriptCallError("ValueError", str(error)) from None

    def _log(self, data: Any, level: str = "info") -> None:
        self._count(data)
        try:
            self._round.channel.log(level, data, None)
        except ValueError as error:
            raise ScriptCallError("ValueError", str(error)) from None

    def _offset(self, zone: str, moment: str) -> int:
        """Return how far a zone is from UTC at a moment, in seconds. Without an offset of its own it is
        the zone's time. Raises Raised."""
        try:
            here, when = ZoneInfo(zone), datetime.fromisoformat(moment)
            when = when.replace(tzinfo=here) if when.tzinfo is None else when.astimezone(here)
            offset = when.utcoffset()
        except (ValueError, TypeError, OSError, OverflowError, ZoneInfoNotFoundError):
            raise ScriptCallError(
                "ValueError", f"{zone!r} is not a time zone such as Europe/Oslo"
            ) from None
        assert offset is not None
        return round(offset.total_seconds())

    def _fail(self, message: str) -> None:
        raise CallOverError(refusal(str(message)))

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(float(seconds), MAX_SLEEP))

    async def _http(self, *request: Any) -> Any:
        self.sent += 1
        if self.sent > MAX_REQUESTS:
            raise ScriptCallError("RuntimeError", f"a call sends at most {MAX_REQUESTS} requests")
        step = self._round.recording.step
        try:
            return await step(
                "http", self._requests.send, [list(request)], {}, self._round.in_thread
            )
        except (EgressError, MisusedError) as error:
            raise ScriptCallError("RuntimeError", str(error)) from None
        except ToolError as refusal:
            raise self._refused(refusal) from None
        except Exception:
            log.exception("a request of a script failed")
            raise ScriptCallError("RuntimeError", "the request failed") from None


@lru_cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Read the parameters of a method. It takes longer than most calls."""
    return inspect.signature(function)


def form_schema(fields: Any) -> Any:
    """Return the JSON Schema of a form: `fields` itself, or one of the short form.

    In the short form each field has a type (`str`, `int`, `float`, `bool`), a list of choices, or a
    JSON Schema. The sandbox writes a type as its name.
    """
    if not isinstance(fields, dict) or isinstance(fields.get("properties"), dict):
        return fields
    properties = {name: _field(field) for name, field in fields.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _field(field: Any) -> Any:
    match field:
        case list():
            return {"type": "string", "enum": field}
        case {"type": str(name)} if name in _TYPES:
            return {**field, "type": _TYPES[name]}
        case _:
            return field


def refusal(text: str) -> Complete:
    """Return a result with an error that the caller should read."""
    clean = without_lone_surrogates(text)
    return Complete({"content": [{"type": "text", "text": clean}], "isError": True})
