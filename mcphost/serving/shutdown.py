"""The phases of this process's shutdown and their callbacks: notice, drain, cut.

During the notice everything is served as before; only `/readyz` reports the shutdown. The drain
ends work that would last for ever. The cut ends what has not ended by itself in time.
"""

import logging
from collections.abc import Callable
from enum import IntEnum

Callback = Callable[[], None]

log = logging.getLogger(__name__)


class Phase(IntEnum):
    """The phases of a process, in order."""

    SERVING = 0
    NOTICE = 1
    DRAIN = 2
    CUT = 3


_callbacks: dict[Phase, list[Callback]] = {Phase.DRAIN: [], Phase.CUT: []}
_phase = Phase.SERVING


def phase() -> Phase:
    """The phase of this process."""
    return _phase


def leaving() -> bool:
    """Whether notice has been given: load balancers should choose another process."""
    return _phase >= Phase.NOTICE


def draining() -> bool:
    """Whether the drain has begun: the process still answers, but starts nothing long-lived."""
    return _phase >= Phase.DRAIN


def problem() -> str | None:
    """The health probe: from the notice on the process is not ready."""
    return "the server is about to stop" if leaving() else None


def on_drain(callback: Callback) -> None:
    """Call `callback` once, on the event loop, when the drain begins."""
    _callbacks[Phase.DRAIN].append(callback)


def on_cut(callback: Callback) -> None:
    """Call `callback` once, on the event loop, at the cut."""
    _callbacks[Phase.CUT].append(callback)


def give_notice() -> None:
    """Enter the notice phase. May be called in a signal handler."""
    _enter(Phase.NOTICE)


def begin() -> None:
    """Begin the drain. On the event loop; a second call does nothing."""
    _enter(Phase.DRAIN)


def cut() -> None:
    """Begin the cut. On the event loop; a second call does nothing."""
    _enter(Phase.CUT)


def reset() -> None:
    """Return to the first phase, once the process has stopped. The callbacks stay."""
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
            log.exception("a shutdown callback raised")
