"""Runs code of tool files at start, with a time limit. An exception that it raises is returned as a value.

It runs in a daemon thread. A timer signal in the main thread could interrupt more (it also ends a
blocking call), but the platform is not always loaded in the main thread, and `except BaseException`
around a loop in the file would catch it for ever. The thread that waits here continues in any case.
Besides, threads that a file starts are then daemons too, so they do not keep a process from ending,
and a file cannot replace the process's signal handlers.

A thread whose time is over is sent SystemExit. That ends Python code at its next line; a blocking call
ends when it returns, and until then the thread stays, with the locks of the modules that it was
importing. Not bounded: C code that keeps the GIL (a regular expression, a power of huge numbers), and
what ends the process itself (`os._exit`, a crash).
"""

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread, get_ident
from traceback import walk_stack, walk_tb
from types import FrameType
from typing import Final, TypeVar

from mcphost.kinds.functions.schemas import SignatureError

T = TypeVar("T")

MAX_MESSAGE: Final = 500
_ENDINGS: Final = 10
_ENDING_SECONDS: Final = 0.05
"""How often, and how long each time, a thread whose time is over is asked to end: more than once,
because a file may catch the first SystemExit."""
_raise_in: Final = ctypes.pythonapi.PyThreadState_SetAsyncExc


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an attempt failed. `line` is the last line of the file that was running, 0 if none was."""

    message: str
    line: int


def attempt(work: Callable[[], T], path: Path, seconds: float) -> T | Fault:
    """Return the result of `work`, which runs code of the file `path`, or why there is none.

    Raises KeyboardInterrupt only if the operator interrupts the process.
    """
    results: SimpleQueue[T | Fault] = SimpleQueue()
    thread = Thread(
        target=lambda: results.put(_result(work, path)),
        name=f"mcphost-load-{path.stem}",
        daemon=True,
    )
    thread.start()
    try:
        return results.get(timeout=seconds)
    except Empty:
        return _give_up(thread, path, seconds)


def printable(text: str) -> str:
    """Return a text of a tool file in one line that every log, terminal and page can show."""
    line = text.strip().partition("\n")[0][:MAX_MESSAGE]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _result(work: Callable[[], T], path: Path) -> T | Fault:
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - a file may raise anything, sys.exit() too
        # Not of the error's attribute, which its class may have replaced.
        lines = [*_lines(walk_tb(sys.exc_info()[2]), path)]
        try:
            return Fault(printable(_message(error)), _syntax_line(error, path) or (0, *lines)[-1])
        except BaseException:  # noqa: BLE001 - the texts of an error are code of the file as well
            return Fault("an error whose text cannot be read", (0, *lines)[-1])


def _message(error: BaseException) -> str:
    if isinstance(error, SignatureError):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    line = str(text).strip().partition("\n")[0]
    name = type(error).__name__
    return f"{name}: {line}" if line else name


def _syntax_line(error: BaseException, path: Path) -> int:
    if not isinstance(error, SyntaxError) or error.filename != str(path):
        return 0
    return error.lineno if type(error.lineno) is int else 1


def _lines(frames: Iterable[tuple[FrameType, int]], path: Path) -> Iterator[int]:
    """Yield the lines of the file that frames are at."""
    return (line or 1 for frame, line in frames if frame.f_code.co_filename == str(path))


def _give_up(thread: Thread, path: Path, seconds: float) -> Fault:
    assert thread.ident is not None
    frame = sys._current_frames().get(thread.ident)
    line = next(_lines(walk_stack(frame), path), 0) if frame else 0
    ended = any(_ends(thread) for _ in range(_ENDINGS))
    rest = "" if ended else ", and has not been stopped"
    return Fault(f"did not end within {seconds:g} seconds{rest}", line)


def _ends(thread: Thread) -> bool:
    _ask_to_end(thread)
    thread.join(_ENDING_SECONDS)
    return not thread.is_alive()


def _ask_to_end(thread: Thread) -> None:
    """Raise SystemExit in a thread, which takes it at its next line, or when its blocking call returns.

    Until Python 3.13 such an exception raises one flag for all threads, and only a thread that raises its
    own lowers it. While it is raised, a traced call (coverage, a debugger) never begins: it looks at the
    flag again and again. So this thread raises one of its own at once. The other one is looked for
    whenever its thread gets the GIL.
    """
    assert thread.ident is not None
    own_thread = get_ident()
    with suppress(_FlagLoweredError):
        _raise_in(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
        _raise_in(ctypes.c_ulong(own_thread), ctypes.py_object(_FlagLoweredError))
        while True:  # until it is raised here
            pass


class _FlagLoweredError(Exception):
    """Raised by this thread in itself."""
