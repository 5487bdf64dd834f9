"""Tell apart a cancellation by the tool's own code from one by the server."""

import asyncio
from asyncio import CancelledError, Task
from collections.abc import Coroutine
from typing import Any, cast


class OwnCancellations:
    """Counts how often a coroutine cancels the task that it runs in.

    Resumes the coroutine step by step: the server cancels the task between two steps, the
    coroutine within one. `cr_await` is the coroutine. Make it in the coroutine's task.
    """

    __slots__ = ("_task", "count", "cr_await")

    def __init__(self) -> None:
        self._task = cast("Task[Any]", asyncio.current_task())
        self.count = 0

    def of(self, work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """Return what stands for `work`, to be sent to, thrown into and closed in its place."""
        self.cr_await = work
        return cast("Coroutine[Any, Any, Any]", self)

    @property
    def is_cancelled_by_others(self) -> bool:
        return self._task.cancelling() > self.count

    async def undo(self) -> None:
        """Undo them all. Raises CancelledError if others have cancelled the task too."""
        try:
            await asyncio.sleep(0)  # the last one may not have been delivered
        except CancelledError:
            if self.is_cancelled_by_others:
                raise
        for _ in range(self.count):
            self._task.uncancel()

    def send(self, value: Any) -> Any:
        before = self._task.cancelling()
        try:
            return self.cr_await.send(value)
        finally:
            self.count = max(0, self.count + self._task.cancelling() - before)

    def throw(self, error: BaseException) -> Any:
        before = self._task.cancelling()
        try:
            return self.cr_await.throw(error)
        finally:
            self.count = max(0, self.count + self._task.cancelling() - before)

    def close(self) -> None:
        self.cr_await.close()
