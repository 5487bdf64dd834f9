"""A coroutine that has begun: what never waits is over at once, and needs no timer and no task."""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Begun(Generic[T]):
    """Runs a coroutine, in the task that makes this, up to its first wait or to its end.

    `over` says which; then `value` is what it returned. Otherwise it must be awaited, once and in
    the same task, with no other wait in between. What the coroutine raises is raised.
    """

    __slots__ = ("_waits_for", "_work", "over", "value")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.over = False
        try:
            self._waits_for = work.send(None)
        except StopIteration as end:
            self.over = True
            self.value = cast(T, end.value)

    def __await__(self) -> Generator[Any, Any, T]:
        """What `await` on the coroutine would have done from here on."""
        work, waits_for = self._work, self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except BaseException as error:  # noqa: BLE001 - all of it is the coroutine's
                    waits_for = work.throw(error)
                else:
                    waits_for = work.send(sent)
        except StopIteration as end:
            return cast(T, end.value)
