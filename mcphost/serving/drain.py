"""How this process leaves, and who wants to know: first notice, then the drain, then the cut.

During the notice everything is served as before; only `/readyz` says that it ends. With the drain
begins the end of what would last for ever. The cut ends what has not ended by itself in time.
"""

import logging
from collections.abc import Callable
from enum import IntEnum

Callback = Callable[[], None]

log = logging.getLogger(__name__)


class Phase(IntEnum):
    """Where a process stands, in the order in which it goes through them."""

    SERVING = 0
    NOTICE = 1
    DRAIN = 2
    CUT = 3


_callbacks: dict[Phase, list[Callback]] = {Phase.DRAIN: [], Phase.CUT: []}
_phase = Phase.SERVING


def leaving() -> bool:
    """Whether notice has been given: whoever chooses among processes should choose another."""
    return _phase >= Phase.NOTICE


def draining() -> bool:
    """Whether the process has begun to drain: it still answers, and takes on nothing that lasts."""
    return _phase >= Phase.DRAIN


def problem() -> str | None:
    """The health probe: while it leaves, a process is not ready."""
    return "the server is about to stop" if leaving() else None


def on_drain(callback: Callback) -> None:
    """Have `callback` called once, on the event loop, when the drain begins."""
    _callbacks[Phase.DRAIN].append(callback)


def on_cut(callback: Callback) -> None:
    """Have `callback` called once, on the event loop, when what is left has to end."""
    _callbacks[Phase.CUT].append(callback)


def give_notice() -> None:
    """The process will leave. May be called in a signal's handler."""
    _enter(Phase.NOTICE)


def begin() -> None:
    """The drain begins. On the event loop; a second time does nothing."""
    _enter(Phase.DRAIN)


def cut() -> None:
    """The time is up. On the event loop; a second time does nothing."""
    _enter(Phase.CUT)


def reset() -> None:
    """There is no drain, as in a process that starts. The callbacks stay."""
    global _phase  # noqa: PLW0603 - one process, one end
    _phase = Phase.SERVING


def _enter(phase: Phase) -> None:
    global _phase  # noqa: PLW0603 - one process, one end
    if _phase >= phase:
        return
    _phase = phase
    for callback in tuple(_callbacks.get(phase, ())):
        try:
            callback()
        except Exception:
            log.exception("something that wanted to know of the end of this process raised")
