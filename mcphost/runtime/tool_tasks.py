"""The tasks that a tool starts: none outlives its round, and none ends the process.

Running code is identified by its branch: the tool's own, or one for each task, named by the path of
its creation. The same program has the same paths in every round.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar, Union
from weakref import WeakSet

from mcphost.runtime.notification_channel import NotificationChannel
from mcphost.runtime.started_coroutine import close

T = TypeVar("T")
Work = Coroutine[Any, Any, T] | Generator[Any, None, T]

PASSES = 5
PASS_SECONDS = 1.0

log = logging.getLogger(__name__)
_here: ContextVar[Union["ToolTasks", "Branch", None]] = ContextVar("mcphost_branch", default=None)


class QuitError(Exception):
    """A task of a tool raised SystemExit or KeyboardInterrupt, which would end the event loop."""


class Unwound(BaseException):
    """The round ends here, because an answer is missing, or the call continues as a task or in
    another process. Tools must not catch it."""


class ToolTasks:
    """The tasks started, directly or by one another, from the code between `enter` and `exit`.

    It is also the branch of the code itself, the root of all others. `channel` is the round's.
    """

    path = ""
    step = ""
    started = 0
    total = 0
    ending = False
    _tasks: WeakSet[Task[Any]] | None = None

    def __init__(self, channel: NotificationChannel) -> None:
        self.channel = channel

    @property
    def root(self) -> "ToolTasks":
        return self

    def enter(self) -> None:
        """Begin to track tasks started in this context.

        The loop's task factory is replaced by one that tracks tasks; an earlier factory still
        creates them.
        """
        loop = asyncio.get_running_loop()
        factory = loop.get_task_factory()
        if not isinstance(factory, _Factory):
            loop.set_task_factory(_Factory(factory))
        self._token = _here.set(self)

    @property
    def runs_here(self) -> bool:
        """Whether the running code is the tool's: its function, or one of its tasks or threads."""
        branch = _here.get()
        return branch is self or (branch is not None and branch.root is self)

    def add(self, task: "Task[Any]") -> None:
        if self._tasks is None:
            self._tasks = WeakSet()
        self._tasks.add(task)
        self.total += 1

    def exit(self) -> None:
        """Stop tracking tasks started in this context. Tracked ones stay tracked."""
        _here.reset(self._token)

    def here(self) -> Union["ToolTasks", "Branch"]:
        """Return the running branch; the root where the tool's context variables were lost."""
        branch = _here.get()
        return self if branch is None or branch.root is not self else branch

    @property
    def unfinished(self) -> "set[Task[Any]]":
        """The tasks that have not ended."""
        if self._tasks is None:
            return set()
        return {task for task in self._tasks if not task.done()}

    async def end(self) -> None:
        """Cancel the remaining tasks and wait for them, and for tasks that they start meanwhile.

        A task that does not end is given up after five cancellations in five seconds: it is closed
        where it waits.
        """
        self.ending = True
        for _ in range(PASSES):
            tasks = self.unfinished
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=PASS_SECONDS)
        if tasks := self.unfinished:
            log.error("%d tasks of a tool still run after cancellation; closing them", len(tasks))
            for task in tasks:
                guarded: Any = task.get_coro()
                guarded.given_up = True  # it is closed, and its code does not run again
                task.cancel()
            await asyncio.wait(tasks, timeout=PASS_SECONDS)


class Branch:
    """Code of a tool that runs on its own: a task, or a step, whose id is in `step`.

    `started` counts the tasks that it started.
    """

    __slots__ = ("path", "root", "started", "step")

    def __init__(self, root: ToolTasks, path: str, step: str) -> None:
        self.root = root
        self.path = path
        self.step = step
        self.started = 0


def running() -> ToolTasks | None:
    """Return the tool whose code runs here; None without context variables of any tool."""
    branch = _here.get()
    return None if branch is None else branch.root


@contextmanager
def inside_step(branch: ToolTasks | Branch, step: str) -> Iterator[None]:
    """Count what runs in this context meanwhile, and all that it starts, as part of the step."""
    token = _here.set(Branch(branch.root, step, step))
    try:
        yield
    finally:
        with suppress(ValueError):  # other code has resumed it, which must not become the tool's
            _here.reset(token)


class _Factory:
    """A task factory that adds every task to the tool whose code started it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any] | None) -> None:
        self._make = make

    def __call__(self, loop: AbstractEventLoop, work: Work[T], **options: Any) -> "Task[T]":
        parent = _here.get()
        started: Any = work
        if (
            parent is not None
        ):  # the path of a new branch is its parent's path, and its number there
            parent.started += 1
            path = f"{parent.path}.{parent.started}"
            started = _Guarded(work, Branch(parent.root, path, parent.step))
        task: Task[T]
        if self._make is None:
            task = Task(started, loop=loop, **options)
        else:
            task = self._make(loop, started, **options)
        if parent is not None:
            parent.root.add(task)
        return task


class _Guarded(Coroutine[Any, Any, T]):
    """A coroutine on its own branch that cannot end the event loop: asyncio lets SystemExit through
    to the process."""

    __slots__ = ("__name__", "__qualname__", "_branch", "_work", "given_up")

    def __init__(self, work: Any, branch: Branch) -> None:
        self._work = work
        self._branch: Branch | None = branch
        self.given_up = False
        self.__name__ = getattr(work, "__name__", type(work).__name__)
        self.__qualname__ = getattr(work, "__qualname__", self.__name__)

    def send(self, value: Any) -> Any:
        if self._branch is not None:
            _here.set(self._branch)
            self._branch = None
        try:
            return self._work.send(value)
        except Unwound:
            _look_at_it()
            raise
        except (SystemExit, KeyboardInterrupt) as error:
            raise QuitError(repr(error)) from error

    def throw(self, *details: Any) -> Any:
        if self.given_up:
            close(self._work)
            raise asyncio.CancelledError
        try:
            return self._work.throw(*details)
        except Unwound:
            _look_at_it()
            raise
        except (SystemExit, KeyboardInterrupt) as error:
            raise QuitError(repr(error)) from error

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()


def _look_at_it() -> None:
    """Mark the exception of this task as retrieved, so that asyncio does not log an unwinding that
    no code awaits."""
    task = asyncio.current_task()
    assert task is not None
    task.add_done_callback(Task.exception)
