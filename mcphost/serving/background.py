"""The asyncio tasks of this process that outlive the requests which started them."""

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVar

CANCEL_SECONDS: Final = 2.0
"""How long cancelled tasks may take to end."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Starts tasks, and holds a reference to each until it is done. Only for the event loop's thread.

    A task runs in an empty context unless it is given one, because it does not belong to the request
    or tool that starts it.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(
        self, work: Coroutine[Any, Any, T], context: Context | None = None
    ) -> "asyncio.Task[T]":
        """Run `work` in a task, and return the task."""
        create = partial(asyncio.get_running_loop().create_task, work)
        # A tool's context holds the tasks that are created in it, and ends them with the tool.
        task = Context().run(partial(create, context=context))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def end(self, seconds: float) -> None:
        """Wait until all tasks are done, also those that they start; cancel those for which `seconds`
        were not enough."""
        if await self.wait_until_idle(seconds):
            return
        log.warning("work is cancelled at the end of the process: %d", len(self._running))
        for task in tuple(self._running):
            task.cancel()
        if not await self.wait_until_idle(CANCEL_SECONDS):
            log.error("work is left at the end of the process: %d", len(self._running))

    async def wait_until_idle(self, seconds: float) -> bool:
        """Wait at most `seconds` until no task runs; return whether that is so."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._running and (remaining := until - loop.time()) > 0:
            await asyncio.wait(self._running, timeout=remaining)
        return not self._running


background: Final = BackgroundTasks()
