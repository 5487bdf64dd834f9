"""A coroutine that has begun: what never waits is over at once, and needs no timer and no task."""

import logging
from asyncio import CancelledError
from collections.abc import Coroutine, Generator, Iterator
from ctypes import py_object, pythonapi
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

log = logging.getLogger(__name__)


def close(work: Coroutine[Any, Any, Any]) -> None:
    """End a coroutine where it waits, whatever it says to that. It must not be resumed again.

    One that goes on all the same is kept for ever: to be rid of it Python would close it again,
    perhaps where no event loop runs and all that it awaits fails at once, and it would never end.
    """
    awaited = list(_chain(work))
    try:
        work.close()
    except BaseException as error:  # noqa: BLE001 - it may raise anything, or go on
        log.error("the code of a tool does not end when it is closed: %r", error)
        for each in awaited:
            pythonapi.Py_IncRef(py_object(each))


def _chain(work: Any) -> Iterator[Any]:
    """A coroutine, the one that it awaits, and so on."""
    while work is not None:
        yield work
        work = getattr(work, "cr_await", None)


class Begun(Generic[T]):
    """Runs a coroutine, in the task that makes this, up to its first wait or to its end.

    `over` says which; then `value` is what it returned. Otherwise it must be awaited, once and in
    the same task, with no other wait in between. What the coroutine raises is raised.
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
        """The next cancellation of its task is this error to it, and no cancellation."""
        self._instead = error

    def give_up(self) -> None:
        """The next cancellation of its task closes it where it waits, and goes on from there."""
        self._given_up = True

    def __await__(self) -> Generator[Any, Any, T]:
        """What `await` on the coroutine would have done from here on."""
        work = self._work
        try:
            while True:
                try:
                    sent = yield self.waits_for
                except BaseException as error:  # noqa: BLE001 - all of it is the coroutine's
                    self.waits_for = work.throw(self._meant(error))
                else:
                    self.waits_for = work.send(sent)
        except StopIteration as end:
            return cast(T, end.value)

    def _meant(self, error: BaseException) -> BaseException:
        """What an error that wakes it is to it."""
        if not isinstance(error, CancelledError):
            return error
        if self._given_up:
            close(self._work)
            raise error
        instead, self._instead = self._instead, None
        return error if instead is None else instead
