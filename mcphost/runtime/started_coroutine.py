"""Starts a coroutine at once: one that never waits needs no timer and no task."""

import logging
from asyncio import CancelledError
from collections.abc import Coroutine, Generator
from ctypes import py_object, pythonapi
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

log = logging.getLogger(__name__)


def close(work: Coroutine[Any, Any, Any]) -> None:
    """Close a coroutine where it waits, even if it resists. It must not be resumed again.

    A coroutine that goes on after this is kept forever: to free it, Python would close it again,
    perhaps where no event loop runs and everything it awaits fails at once, and it would never end.
    """
    awaited: list[Any] = []  # the coroutine, the one that it awaits, and so on
    coroutine: Any = work
    while coroutine is not None:
        awaited.append(coroutine)
        coroutine = getattr(coroutine, "cr_await", None)
    try:
        work.close()
    except BaseException as error:  # noqa: BLE001 - it may raise anything, or go on
        log.error("a tool's coroutine did not stop when it was closed: %r", error)
        for coroutine in awaited:  # a list would be emptied at exit, which would close them
            pythonapi.Py_IncRef(py_object(coroutine))


class StartedCoroutine(Generic[T]):
    """Runs a coroutine, in the current task, up to its first wait or to its end.

    If `over`, it has ended and `value` is its result. Otherwise it must be awaited, once and in the
    same task, with no other wait in between. Exceptions of the coroutine are raised.
    """

    over = False
    _given_up = False
    _instead: BaseException | None = None

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        try:
            self.waits_for = work.send(None)
        except StopIteration as end:
            self.over = True
            self.value = cast(T, end.value)

    def wake_with(self, error: BaseException) -> None:
        """Turn the next cancellation of the task into this error."""
        self._instead = error

    def give_up(self) -> None:
        """Make the next cancellation of the task close the coroutine where it waits."""
        self._given_up = True

    def __await__(self) -> Generator[Any, Any, T]:
        """Do what `await` on the coroutine would have done from here on."""
        work = self._work
        try:
            while True:
                try:
                    sent = yield self.waits_for
                except CancelledError as error:
                    if self._given_up:
                        close(work)
                        raise
                    instead, self._instead = self._instead, None
                    self.waits_for = work.throw(error if instead is None else instead)
                except BaseException as error:  # noqa: BLE001 - all of it is the coroutine's
                    self.waits_for = work.throw(error)
                else:
                    self.waits_for = work.send(sent)
        except StopIteration as end:
            return cast(T, end.value)
