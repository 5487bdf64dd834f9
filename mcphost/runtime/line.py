"""What a running tool says to its caller: in order, from any thread, and never after its end."""

import asyncio
import logging
import math
import threading
from contextvars import copy_context
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from mcphost.protocol.messages import LOG_LEVELS
from mcphost.runtime.ports import Notifier

LARGEST = 2**63

log = logging.getLogger(__name__)


class CallEnded(Exception):  # noqa: N818 - a refusal that says what happened
    """The call is over: nothing can be said to its caller any more."""


class Line:
    """The way from one round of a tool to its caller. Made on the event loop's thread.

    The notifier is called on that thread and in the context variables of whoever made the line,
    so that nothing it starts counts as the tool's own.
    """

    __slots__ = ("_loop", "_notifier", "_open", "_outside", "_thread", "_told")

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._outside = copy_context()
        self._told = -math.inf
        self._open = True

    @property
    def open(self) -> bool:
        return self._open

    def end(self) -> None:
        """The round is over. What is said from now on raises CallEnded."""
        self._open = False

    def check(self) -> None:
        """Raises CallEnded once the round is over, and says so in the log: no tool may do that."""
        if not self._open:
            log.warning("a tool used its context after its call had ended")
            raise CallEnded("the call this context belongs to has ended")

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell how far the work is (spec: basic/patterns/progress).

        A value that is not above the last one told is dropped: on the wire progress only rises.
        Raises ValueError for what is not a finite number, and CallEnded.
        """
        self.check()
        for number in (progress, total):
            if number is not None and not -LARGEST < number < LARGEST:
                raise ValueError("progress and total are finite numbers below 2**63")
        self._emit(self._tell, progress, total, message and _json(message))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """Send a log message. What JSON cannot hold is sent as its `repr`.

        Raises ValueError for an unknown level, and CallEnded.
        """
        self.check()
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is not a log level: use one of {', '.join(LOG_LEVELS)}")
        self._emit(self._notifier.log, level, _json(data), logger)

    def _emit(self, *said: Any) -> None:
        if threading.get_ident() == self._thread:
            self._outside.run(*said)
        else:
            self._loop.call_soon_threadsafe(self._late, *said)

    def _late(self, *said: Any) -> None:
        if self._open:
            self._outside.run(*said)

    def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        if progress > self._told:
            self._told = progress
            self._notifier.progress(progress, total, message)


def _json(data: Any) -> Any:
    """`data` as JSON that can be sent, whatever it is."""
    try:
        data = to_jsonable_python(data, fallback=repr)
        orjson.dumps(data)
    except (TypeError, ValueError):
        return ascii(data)
    return data
