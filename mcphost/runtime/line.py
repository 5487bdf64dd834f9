"""What a running tool says to its caller: in order, from any thread, and never after its end."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, NoReturn

import orjson
from pydantic_core import to_jsonable_python

from mcphost.protocol.messages import LOG_LEVELS
from mcphost.runtime.ports import Notifier, nothing

LARGEST = 2**63

MOST_LATE = 100
BRAKE_SECONDS = 1.0

log = logging.getLogger(__name__)


class CallEnded(Exception):  # noqa: N818 - a refusal that says what happened
    """The call is over: nothing can be said to its caller any more."""


class Line:
    """The way from one round of a tool to its caller. Made on the event loop's thread.

    The notifier is called on that thread and in the context variables of whoever made the line,
    so that nothing it starts counts as the tool's own. While `silent`, what is said was said in an
    earlier round. `told` is the highest progress that the caller knows of; `late` is called when
    somebody would go on after the end.
    """

    silent = False
    _open = True
    _refused = 0

    def __init__(
        self,
        notifier: Notifier,
        told: float | None = None,
        late: Callable[[], None] = nothing,
    ) -> None:
        self._notifier = notifier
        self._on_late = late
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._outside = copy_context()
        self.told = told

    @property
    def open(self) -> bool:
        return self._open

    @property
    def is_here(self) -> bool:
        """Whether this is the event loop's thread."""
        return threading.get_ident() == self._thread

    def end(self) -> None:
        """The round is over. What is said from now on raises CallEnded."""
        self._open = False

    def check(self) -> None:
        """Raises CallEnded once the round is over, and says so in the log: no tool may do that."""
        if not self._open:
            self._refuse()

    def _refuse(self) -> NoReturn:
        """A thread that takes no notice, again and again, is slowed down: it cannot be stopped."""
        self._refused += 1
        if self._refused <= MOST_LATE:
            log.warning("a tool used its context after its call had ended")
            with suppress(RuntimeError):  # the loop has ended as well
                self.loop.call_soon_threadsafe(self._on_late, context=Context())
        elif not self.is_here:
            time.sleep(BRAKE_SECONDS)
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

    def do(self, what: Callable[[], None]) -> None:
        """Do something with the way itself, after what was said before. Raises CallEnded."""
        self.check()
        self._emit(what)

    def _emit(self, *said: Any) -> None:
        if self.silent:
            return
        if threading.get_ident() == self._thread:
            self._outside.run(*said)
        else:
            self.loop.call_soon_threadsafe(self._late, *said)

    def _late(self, *said: Any) -> None:
        if self._open:
            self._outside.run(*said)

    def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        if self.told is None or progress > self.told:
            self.told = progress
            self._notifier.progress(progress, total, message)


def _json(data: Any) -> Any:
    """`data` as JSON that can be sent, whatever it is."""
    try:
        data = to_jsonable_python(data, fallback=repr)
        orjson.dumps(data)
    except (TypeError, ValueError):
        return ascii(data)
    return data
