"""Tasks that a tool starts: none outlives its round, and none takes the process with it.

Where code of a tool runs is known by its branch: the tool's own, or one for each task, named by the
path of its creation. The same program gives the same paths in every round.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, Union
from weakref import WeakSet

from mcphost.runtime.begun import close

T = TypeVar("T")
Work = Coroutine[Any, Any, T] | Generator[Any, None, T]

PASSES = 5
PASS_SECONDS = 1.0

log = logging.getLogger(__name__)
_here: ContextVar[Union["Children", "Branch", None]] = ContextVar("mcphost_branch", default=None)


class Quit(Exception):  # noqa: N818 - what happened, not what went wrong
    """A task of a tool raised SystemExit or KeyboardInterrupt, which would end the event loop."""


class Unwound(BaseException):
    """The round ends here, because of what has no answer yet. Not for tools to catch."""


class Children:
    """The tasks started, directly or by one another, from the code between `enter` and `end`.

    It is also the branch of the code itself, from which all others spring.
    """

    path = ""
    step = ""
    started = 0
    total = 0
    ending = False
    _tasks: WeakSet[Task[Any]] | None = None

    @property
    def root(self) -> "Children":
        return self

    def enter(self) -> None:
        """From here on, tasks started in this context are ours."""
        _watch(asyncio.get_running_loop())
        self._token = _here.set(self)

    def add(self, task: "Task[Any]") -> None:
        if self._tasks is None:
            self._tasks = WeakSet()
        self._tasks.add(task)
        self.total += 1

    def leave(self) -> None:
        """Tasks started in this context are no longer ours. Those that are, stay."""
        _here.reset(self._token)

    def here(self) -> Union["Children", "Branch"]:
        """The branch that runs; the first one where the tool has lost its context variables."""
        branch = _here.get()
        return self if branch is None or branch.root is not self else branch

    @property
    def left(self) -> "set[Task[Any]]":
        """Those that have not ended."""
        if self._tasks is None:
            return set()
        return {task for task in self._tasks if not task.done()}

    async def end(self) -> None:
        """Cancel what is left and wait for it, also for what it starts while it ends.

        A task that will not end is given up after five seconds and five cancellations: it is
        closed where it waits.
        """
        self.ending = True
        for _ in range(PASSES):
            left = self.left
            if not left:
                return
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=PASS_SECONDS)
        if left := self.left:
            log.error("%d tasks of a tool do not end when cancelled", len(left))
            for task in left:
                _give_up(task)
            await asyncio.wait(left, timeout=PASS_SECONDS)


class Branch:
    """Code of a tool that runs on its own: a task, or a step, and then `step` says which.

    `started` counts the tasks that it began.
    """

    __slots__ = ("path", "root", "started", "step")

    def __init__(self, root: Children, path: str, step: str) -> None:
        self.root = root
        self.path = path
        self.step = step
        self.started = 0


@contextmanager
def inside_step(branch: Children | Branch, step: str) -> Iterator[None]:
    """What runs in this context meanwhile is of that step, with all that it starts."""
    _here.set(Branch(branch.root, step, step))
    try:
        yield
    finally:
        _here.set(branch)


def _sprout(parent: Children | Branch) -> Branch:
    """The branch of a new task, by its parent's path and which of its tasks it is."""
    parent.started += 1
    return Branch(parent.root, f"{parent.path}.{parent.started}", parent.step)


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
        parent = _here.get()
        if parent is None:
            task: Task[T] = self._make(loop, work, **options)
            return task
        task = self._make(loop, _Guarded(work, _sprout(parent)), **options)
        parent.root.add(task)
        return task


def _make_task(loop: AbstractEventLoop, work: Coroutine[Any, Any, T], **options: Any) -> "Task[T]":
    return Task(work, loop=loop, **options)


class _Guarded(Coroutine[Any, Any, T]):
    """A coroutine on a branch of its own, which cannot end the event loop: asyncio lets SystemExit
    through to the process."""

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
            raise Quit(repr(error)) from error

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
            raise Quit(repr(error)) from error

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()


def _give_up(task: "Task[Any]") -> None:
    """Cancel a task so that its code has no say in it."""
    guarded: Any = task.get_coro()
    guarded.given_up = True
    task.cancel()


def _look_at_it() -> None:
    """See to it that nobody is told of an unwinding of this task, should nobody await it."""
    task = asyncio.current_task()
    assert task is not None
    task.add_done_callback(Task.exception)
