"""A process that runs rounds of tasks and serves no requests, from its start until its rounds are over."""

import asyncio
import logging
import os
import signal
import threading
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from uvicorn.loops.auto import auto_loop_factory

from mcphost.serving import shutdown
from mcphost.serving.execution.owned_task import running_tasks
from mcphost.serving.execution.released_rounds import released_rounds
from mcphost.serving.process.facts import WORKER
from mcphost.serving.process.lifecycle import Companion, ServerProcess

CUT_SECONDS: Final = 2.0
"""How long rounds that were cut may take to free their tasks."""
EXIT_SECONDS: Final = 5.0
"""How long tools' threads may keep the process alive after its end."""

OperationsContext = AbstractAsyncContextManager[object]
NOTHING: Final[OperationsContext] = nullcontext()

log = logging.getLogger(__name__)


class WorkerProcess:
    """Works until SIGTERM or Ctrl-C, then drains: it begins no rounds, and those under way leave at
    their next step, or are cut after `drain_seconds`. A second signal cuts them at once."""

    def __init__(
        self, process: ServerProcess, drain_seconds: float, operations: OperationsContext = NOTHING
    ) -> None:
        self._process = process
        self._drain_seconds = drain_seconds
        self._operations = operations
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        """Work until a signal, while `operations` serves health and metrics."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        self._process.start()
        async with self._operations:
            log.info("the worker has started")
            await self._stopping.wait()
            await self._drain()
        await self._process.stop()

    async def _drain(self) -> None:
        log.info("the worker drains")
        shutdown.give_notice()
        shutdown.begin()
        await self._settle(self._drain_seconds)
        if len(running_tasks):
            log.warning("drain ended: cutting rounds of tasks: %d", len(running_tasks))
        shutdown.cut()
        self._hurry.clear()
        await self._settle(CUT_SECONDS)

    def _stop(self) -> None:
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    async def _settle(self, seconds: float) -> None:
        """Wait at most `seconds` until no round runs."""
        ends = [
            asyncio.create_task(_rounds_over()),
            asyncio.create_task(self._hurry.wait()),
        ]
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()


async def _rounds_over() -> None:
    await running_tasks.all_over()
    await released_rounds.all_over()


def work(
    drain_seconds: float, *companions: Companion, operations: OperationsContext = NOTHING
) -> None:
    """Run a worker in this process, until a signal. `operations` serves health and metrics on its event loop.

    Raises vault.errors.MasterKeyMismatchError when the process's master key is not the platform's.
    """
    process = ServerProcess(*companions, role=WORKER)
    process.prepare()
    last_resort = threading.Timer(EXIT_SECONDS, os._exit, (0,))
    last_resort.daemon = True
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:  # as uvicorn chooses it
        runner.run(WorkerProcess(process, drain_seconds, operations).run())
        last_resort.start()
    last_resort.cancel()
