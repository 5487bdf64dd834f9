"""Tasks that a tool starts: none outlives its round, and none takes the process with it."""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
Work = Coroutine[Any, Any, T] | Generator[Any, None, T]

PASSES = 5
PASS_SECONDS = 1.0

log = logging.getLogger(__name__)
_parent: ContextVar["Children | None"] = ContextVar("mcphost_children", default=None)


class Quit(Exception):  # noqa: N818 - what happened, not what went wrong
    """A task of a tool raised SystemExit or KeyboardInterrupt, which would end the event loop."""


class Children:
    """The tasks started, directly or by one another, from the code between `enter` and `end`."""

    __slots__ = ("_tasks", "_token")

    def __init__(self) -> None:
        self._tasks: WeakSet[Task[Any]] | None = None

    def enter(self) -> None:
        """From here on, tasks started in this context are ours."""
        _watch(asyncio.get_running_loop())
        self._token = _parent.set(self)

    def add(self, task: "Task[Any]") -> None:
        if self._tasks is None:
            self._tasks = WeakSet()
        self._tasks.add(task)

    def leave(self) -> None:
        """Tasks started in this context are no longer ours. Those that are, stay."""
        _parent.reset(self._token)

    @property
    def left(self) -> "set[Task[Any]]":
        """Those that have not ended."""
        if self._tasks is None:
            return set()
        return {task for task in self._tasks if not task.done()}

    async def end(self) -> None:
        """Cancel what is left and wait for it, also for what it starts while it ends.

        A task that will not end is given up after five seconds and five cancellations.
        """
        for _ in range(PASSES):
            left = self.left
            if not left:
                return
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=PASS_SECONDS)
        if self.left:
            log.error("%d tasks of a tool do not end when cancelled", len(self.left))


def _watch(loop: AbstractEventLoop) -> None:
    """Make the loop tell whose task it starts. Whatever factory it has goes on making them."""
    factory = loop.get_task_factory()
    if not isinstance(factory, _Factory):
        loop.set_task_factory(_Factory(factory))


class _Factory:
    """A task factory that hands every task to the tool whose code started it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any] | None) -> None:
        self._make: Callable[..., Any] = make or _make_task

    def __call__(self, loop: AbstractEventLoop, work: Work[T], **options: Any) -> "Task[T]":
        parent = _parent.get()
        if parent is None:
            task: Task[T] = self._make(loop, work, **options)
            return task
        task = self._make(loop, _Guarded(work), **options)
        parent.add(task)
        return task


def _make_task(loop: AbstractEventLoop, work: Coroutine[Any, Any, T], **options: Any) -> "Task[T]":
    return Task(work, loop=loop, **options)


class _Guarded(Coroutine[Any, Any, T]):
    """A coroutine that cannot end the event loop: asyncio lets SystemExit through to the process."""

    __slots__ = ("__name__", "__qualname__", "_work")

    def __init__(self, work: Any) -> None:
        self._work = work
        self.__name__ = getattr(work, "__name__", type(work).__name__)
        self.__qualname__ = getattr(work, "__qualname__", self.__name__)

    def send(self, value: Any) -> Any:
        try:
            return self._work.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            raise Quit(repr(error)) from error

    def throw(self, *details: Any) -> Any:
        try:
            return self._work.throw(*details)
        except (SystemExit, KeyboardInterrupt) as error:
            raise Quit(repr(error)) from error

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()
