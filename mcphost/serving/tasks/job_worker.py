"""Take jobs from the queue and do them in this process: rounds of tasks (`mcphost.tasks.jobs`),
and the platform's periodic work (`upkeep`).
"""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from procrastinate import App
from procrastinate.contrib.django.utils import connector_params
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.psycopg_connector import PsycopgConnector
from procrastinate.worker import Worker
from psycopg import Error
from psycopg_pool import PoolTimeout

from mcphost.serving.options import options
from mcphost.serving.tasks import upkeep
from mcphost.serving.tasks.runner import Runner
from mcphost.tasks.jobs import QUEUE, ROUND

POOLED: Final = 3
CONNECTIONS: Final = POOLED + 2
"""How many database connections the queue takes at most: one waits for news, one does the periodic
work, and those of the pool are for all else."""
UPKEEP: Final = "mcphost.upkeep"
"""The name of the periodic jobs, and of their queue."""
EVERY_TEN_SECONDS: Final = "* * * * * */10"
BEAT_SECONDS: Final = 5.0
DEAD_SECONDS: Final = 15.0
"""After how long without a heartbeat the jobs of a worker are dropped: their tasks are queued again."""
POLL_SECONDS: Final = 5.0
"""How often it looks for jobs of which no news has come."""
AGAIN_SECONDS: Final = 1.0
LEAVE_SECONDS: Final = 5.0
"""How long it may take to leave the queue, while the database is away for instance."""

log = logging.getLogger(__name__)
# It logs a traceback whenever the database is away; this module logs that once.
logging.getLogger("procrastinate").setLevel(logging.CRITICAL + 1)
logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL + 1)


class JobWorker:
    """Takes jobs from its start to its end. Only for the event loop's thread.

    The rounds of tasks are run by `runner`.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        # Periodic work may take a while, and requests wait for the threads of `in_database`.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mcphost-upkeep")
        self._working: asyncio.Task[None] | None = None
        self._workers: Sequence[Worker] = ()
        self._ending = asyncio.Event()

    def start(self) -> None:
        """Do jobs, on the running loop, if rounds are queued at all."""
        if options().tasks.queued:
            self._ending.clear()
            self._working = asyncio.get_running_loop().create_task(self._work())

    def works(self) -> bool:
        """Whether it takes jobs now. From any thread."""
        return bool(self._workers) and not self._ending.is_set()

    def end(self) -> None:
        """Take no more jobs. Rounds that run go on."""
        self._ending.set()
        for worker in self._workers:
            worker.stop()

    async def ended(self) -> None:
        """Wait until it has left the queue, at most LEAVE_SECONDS."""
        if self._working is not None and not self._working.done():
            await asyncio.wait([self._working], timeout=LEAVE_SECONDS)

    async def _work(self) -> None:
        unreachable = False
        while not self._ending.is_set():
            try:
                await self._take_jobs()
            except (Error, ConnectorException, PoolTimeout, OSError) as error:
                if not unreachable:
                    log.warning("the queue of tasks cannot be read: %s", type(error).__name__)
                unreachable = True
            except Exception:
                log.exception("the queue of tasks is read again after an error")
            else:
                unreachable = False
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), AGAIN_SECONDS)

    async def _take_jobs(self) -> None:
        """Take jobs until the end, or until the database is away."""
        params = connector_params(DEFAULT_DB_ALIAS)
        connector = PsycopgConnector(kwargs=params, min_size=1, max_size=POOLED)
        rounds, periodic = _app(connector), _app(connector)
        rounds.task(name=ROUND, queue=QUEUE)(self._round)
        # The lock is for those that run, the queueing lock for those that wait: one of each.
        upkeep_task = periodic.task(name=UPKEEP, queue=UPKEEP, lock=UPKEEP, queueing_lock=UPKEEP)
        periodic.periodic(cron=EVERY_TEN_SECONDS)(upkeep_task(self._upkeep))
        async with rounds.open_async():
            await self._run_workers(
                _worker(rounds, QUEUE, options().tasks.rounds),
                # A worker of its own: rounds may take all places of the other one for long.
                _worker(periodic, UPKEEP, 1, listens=False),
            )

    async def _run_workers(self, *workers: Worker) -> None:
        """Run the workers until the end, or until one of them fails."""
        if self._ending.is_set():
            return
        self._workers = workers
        dropping = asyncio.create_task(_drop_stalled(workers[0].app))
        running = [asyncio.create_task(worker.run()) for worker in workers]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._workers = ()
            dropping.cancel()
            for worker in workers:
                worker.stop()
            await asyncio.wait([dropping, *running])
        errors = [
            task.exception() for task in running
        ]  # of all: asyncio logs what is not looked at
        for error in filter(None, errors):
            raise error

    async def _round(self, task: str) -> None:
        """Run the next round of a task. A job says only that there may be one."""
        try:
            await self._runner.run(UUID(task))
        except Exception:
            log.exception("a round of a task could not begin")  # it is due, and is queued again

    async def _upkeep(self, timestamp: int) -> None:
        """Do the platform's periodic work."""
        if unreachable := await asyncio.get_running_loop().run_in_executor(self._thread, _keep_up):
            log.warning("periodic work waits for the database: %s", unreachable)


class _Jobs(JobManager):
    """Ends jobs, if they are still there."""

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """End a job. Other workers have dropped it if this one has written no heartbeats for long."""
        try:
            await super().finish_job(job, status, delete_job)
        except (ConnectorException, PoolTimeout) as error:
            log.debug("a job could not be ended: %r", error)


def _app(connector: PsycopgConnector) -> App:
    app = App(connector=connector)
    app.job_manager = _Jobs(connector)
    return app


def _worker(app: App, queue: str, jobs: int, *, listens: bool = True) -> Worker:
    """A worker that does up to so many jobs of a queue at once. One that does not listen looks for
    them every few seconds."""
    return Worker(
        app,
        queues=[queue],
        concurrency=jobs,
        listen_notify=listens,
        install_signal_handlers=False,  # the process has its own
        fetch_job_polling_interval=POLL_SECONDS,
        shutdown_graceful_timeout=AGAIN_SECONDS,  # a job only waits for its round
        delete_jobs="always",
        update_heartbeat_interval=BEAT_SECONDS,
        stalled_worker_timeout=DEAD_SECONDS,
    )


def _keep_up() -> str:
    try:
        return upkeep.run(upkeep.CHORES)
    finally:
        connections.close_all()


async def _drop_stalled(app: App) -> None:
    """Drop the jobs of workers that are dead, every few seconds."""
    manager = app.job_manager
    while True:
        try:
            await manager.prune_stalled_workers(DEAD_SECONDS)
            for job in await manager.get_stalled_jobs(seconds_since_heartbeat=DEAD_SECONDS):
                await manager.finish_job(job, status=Status.FAILED, delete_job=True)
        except (Error, ConnectorException, PoolTimeout) as error:
            log.debug("stalled jobs could not be dropped: %r", error)
        await asyncio.sleep(BEAT_SECONDS)
