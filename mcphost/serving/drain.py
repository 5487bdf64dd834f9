"""Whether this process is on its way out, and who wants to know when that begins."""

from collections.abc import Callable

_callbacks: list[Callable[[], None]] = []
_draining = False


def draining() -> bool:
    """Whether the process has begun to drain: it still answers, and takes on nothing that lasts."""
    return _draining


def on_drain(callback: Callable[[], None]) -> None:
    """Have `callback` called once, on the event loop, when the drain begins."""
    _callbacks.append(callback)


def begin() -> None:
    """The drain begins. On the event loop; a second time does nothing."""
    global _draining  # noqa: PLW0603 - one process, one drain
    if not _draining:
        _draining = True
        for callback in tuple(_callbacks):
            callback()


def reset() -> None:
    """There is no drain, as in a process that starts. The callbacks stay."""
    global _draining  # noqa: PLW0603 - one process, one drain
    _draining = False
