"""Notifications from a running tool to its caller: in order, from any thread, and never after the
call."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any

from pydantic_core import to_jsonable_python

from mcphost.protocol.json_values import dump_json
from mcphost.protocol.messages import LOG_LEVELS
from mcphost.runtime.call import Call
from mcphost.runtime.ports import Misuse, Notifier, unreported

MAX_PROGRESS = 2**63

MAX_MISUSES = 100
"""How many misuses of one context are reported. Threads that go on after that are slowed down."""
BRAKE_SECONDS = 1.0


class CallEndedError(Exception):
    """The call is over: no notification can be sent to its caller any more."""


class NotificationChannel:
    """The channel from one round of a tool to its caller. Created on the event loop's thread.

    The notifier is called on that thread, with the context variables of the code that created the
    channel, so that nothing it starts counts as the tool's own. While `silent`, notifications are
    dropped, because an earlier round sent them. `last_progress` is the highest progress sent to the
    caller; `misused` is the port of that name.
    """

    silent = False
    open = True
    _misuses = 0

    def __init__(
        self,
        notifier: Notifier,
        last_progress: float | None = None,
        misused: Callable[[Misuse, Call | None], None] = unreported,
    ) -> None:
        self._notifier = notifier
        self._misused = misused
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._outside = copy_context()
        self.last_progress = last_progress

    @property
    def is_here(self) -> bool:
        """Whether the current thread is the event loop's."""
        return threading.get_ident() == self._thread

    def end(self) -> None:
        """End the round. Notifications after this raise CallEndedError."""
        self.open = False

    def check(self) -> None:
        """Raise CallEndedError once the round is over, and report the misuse."""
        if not self.open:
            self.report(Misuse.OVER)
            self.brake()
            raise CallEndedError("the call this context belongs to has ended")

    def report(self, misuse: Misuse, other_call: Call | None = None) -> None:
        """Report a misuse to the port, from any thread; only the first hundred of a round."""
        self._misuses += 1
        if self._misuses <= MAX_MISUSES:
            with suppress(RuntimeError):  # the loop has ended as well
                self.loop.call_soon_threadsafe(self._misused, misuse, other_call, context=Context())

    def brake(self) -> None:
        """Slow down a thread that goes on after a hundred reports: it cannot be stopped."""
        if self._misuses > MAX_MISUSES and not self.is_here:
            time.sleep(BRAKE_SECONDS)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Send a progress notification (spec: basic/patterns/progress).

        A value that is not above the last one sent is dropped, because progress must increase.
        Raises ValueError for values that are not finite or too large, and CallEndedError.
        """
        self.check()
        for number in (progress, total):
            if number is not None and not -MAX_PROGRESS < number < MAX_PROGRESS:
                raise ValueError("progress and total are finite numbers below 2**63")
        self._emit(self._send_progress, progress, total, message and _json(message))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """Send a log message. Values that JSON cannot hold are sent as their `repr`.

        Raises ValueError for an unknown level, and CallEndedError.
        """
        self.check()
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is not a log level: use one of {', '.join(LOG_LEVELS)}")
        self._emit(self._notifier.log, level, _json(data), logger)

    def do(self, function: Callable[[], None]) -> None:
        """Run a function on the event loop, after earlier notifications. Raises CallEndedError."""
        self.check()
        self._emit(function)

    def _emit(self, *callback: Any) -> None:
        if self.silent:
            return
        if threading.get_ident() == self._thread:
            self._outside.run(*callback)
        else:
            self.loop.call_soon_threadsafe(self._late, *callback)

    def _late(self, *callback: Any) -> None:
        if self.open:
            self._outside.run(*callback)

    def _send_progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self.last_progress is None or progress > self.last_progress:
            self.last_progress = progress
            self._notifier.progress(progress, total, message)


def _json(data: Any) -> Any:
    """Convert any value to JSON that can be sent."""
    try:
        data = to_jsonable_python(data, fallback=repr)
        return dump_json(data)[1]
    except (TypeError, ValueError):
        return ascii(data)
