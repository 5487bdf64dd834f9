"""The pool of workers: whom a worker serves, for how long, and what happens when it is lost."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest

from mcphost.sandbox.confinement import MORE_NICE
from mcphost.sandbox.pool import (
    MAX_BUSY_SECONDS,
    MAX_JOBS,
    Sandbox,
    SandboxFullError,
)
from mcphost.sandbox.processes import ROOT, SandboxWorker, WorkerLostError
from tests.sandbox.processes import children_of, files_left, interpreter_of, open_files, runs, until

SEARCH = {"do": "search", "expression": "a", "data": {}}


@contextmanager
def pool(most: int, **options: Any) -> Iterator[Sandbox]:
    """A pool of the test's own, which it may fill; jobs wait for a moment."""
    sandbox = Sandbox(most, **{"wait_seconds": 0.2, **options})
    try:
        yield sandbox
    finally:
        sandbox.close()


async def used(sandbox: Sandbox, tenant: str) -> int:
    """Do one job, and return the process that did it."""
    async with sandbox.worker(tenant) as worker:
        await worker.begin({**SEARCH, "data": {"a": 1}})
        assert await worker.receive(20) == {"is": "done", "value": 1}
        return worker.process_id


async def hurt(sandbox: Sandbox, tenant: str, number: int) -> int:
    """Send a signal to the worker of a job, which is lost then; return its process."""
    with pytest.raises(WorkerLostError) as lost:
        async with sandbox.worker(tenant) as worker:
            process: int = worker.process_id
            os.kill(process, number)
            await worker.begin(SEARCH)
            await worker.receive(0.1 if number == signal.SIGSTOP else 20)
    assert lost.value.late is (number == signal.SIGSTOP)
    return process


async def test_no_worker_serves_two_tenants(sandbox: Sandbox):
    served: dict[str, set[int]] = {}

    async def call(tenant: str) -> None:
        served.setdefault(tenant, set()).add(await used(sandbox, tenant))

    tenants = [f"tenant {number % 6}" for number in range(30)]
    await asyncio.gather(*map(call, tenants))
    everything = [process for processes in served.values() for process in processes]
    assert len(served) == 6
    assert len(everything) == len(set(everything))


async def test_a_tenant_reuses_its_own_worker(sandbox: Sandbox):
    assert await used(sandbox, "again") == await used(sandbox, "again")


@pytest.mark.parametrize(
    ("field", "value"), [("jobs", MAX_JOBS), ("busy_seconds", MAX_BUSY_SECONDS)]
)
async def test_a_worker_is_replaced_after_its_quota_of_work(
    sandbox: Sandbox, field: str, value: float
):
    async with sandbox.worker("replaced") as worker:
        await worker.begin(SEARCH)
        await worker.receive(20)
        setattr(worker, field, value)
        before = worker.process_id
    assert await used(sandbox, "replaced") != before
    await until(lambda: not runs(before))


async def test_a_tenant_at_its_share_leaves_the_remaining_workers_to_other_tenants():
    with pool(2) as sandbox:
        await used(sandbox, "globex")
        async with sandbox.worker("acme"):
            with pytest.raises(SandboxFullError):
                await used(sandbox, "acme")
            await used(sandbox, "globex")


async def test_tenants_alternate_while_one_has_many_jobs():
    """Jobs of a tenant that come last are not done last."""
    sandbox = Sandbox(4, reserve=0, wait_seconds=30)
    order: list[str] = []

    async def job(tenant: str) -> None:
        await used(sandbox, tenant)
        order.append(tenant)

    async with AsyncExitStack() as held:
        for tenant in ("holds", "holds", "holds too"):
            await held.enter_async_context(sandbox.worker(tenant))
        last = await held.enter_async_context(AsyncExitStack())
        await last.enter_async_context(sandbox.worker("many"))
        many = [asyncio.create_task(job("many")) for _ in range(20)]
        await until(lambda: sandbox.waiting == 20)
        few = [asyncio.create_task(job("few")) for _ in range(2)]
        await until(lambda: sandbox.waiting == 22)
        await last.aclose()
        await asyncio.gather(*few)
        assert order.count("many") < 20
        await asyncio.gather(*many)
    sandbox.close()


async def test_a_tenant_without_a_worker_gets_one_while_others_use_all_workers():
    with pool(2, reserve=2) as sandbox:
        async with AsyncExitStack() as held:
            for tenant in ("acme", "globex", "initech"):
                await held.enter_async_context(sandbox.worker(tenant))
            with pytest.raises(SandboxFullError):
                await used(sandbox, "acme")
            assert await used(sandbox, "hooli") == await used(sandbox, "hooli")
            await held.enter_async_context(sandbox.worker("hooli"))
            with pytest.raises(SandboxFullError):
                await used(sandbox, "umbrella")
        assert sandbox.in_use == 0
        await until(lambda: sandbox.idle <= 2)  # the reserve was ended
        await used(sandbox, "umbrella")
        await until(lambda: sandbox.idle <= 2)


async def test_a_long_job_gets_lower_priority_and_its_worker_is_replaced(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mcphost.sandbox.processes.SHORT_SECONDS", 0.05)
    endless = {"do": "script", "prelude": "", "image": None, "now": [], "later": []} | {
        "source": "def f():\n    while True: pass",
        "entry": "f()",
        "arguments": {},
        "limits": {"max_turn_duration_secs": 60.0},
        "time": "2026-01-01T00:00:00+00:00",
        "seed": "00",
        "printed": 0,
    }
    async with sandbox.worker("computes") as worker:
        process = worker.process_id
        before = os.getpriority(os.PRIO_PROCESS, interpreter_of(process))
        await worker.begin(endless)
        receiving = asyncio.create_task(worker.receive(60))
        await until(lambda: worker.is_demoted)
        for each in (process, interpreter_of(process)):
            assert os.getpriority(os.PRIO_PROCESS, each) == min(before + MORE_NICE, 19)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
    assert await used(sandbox, "computes") != process


async def test_a_waiting_job_gets_the_next_free_worker(sandbox: Sandbox):
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(sandbox.worker("waits"))
        waiting = asyncio.create_task(used(sandbox, "waits"))
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting


async def test_a_cancelled_start_frees_its_slot():
    with pool(1, wait_seconds=30) as sandbox:
        starting = asyncio.create_task(used(sandbox, "acme"))
        await asyncio.sleep(0)  # it has asked for a worker
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await until(lambda: sandbox.in_use == 0)
        await used(sandbox, "globex")


async def test_a_cancelled_job_ends_its_worker_and_the_interpreter(sandbox: Sandbox):
    async def forever() -> None:
        async with sandbox.worker("cancelled") as worker:
            pids.extend([worker.process_id, interpreter_of(worker.process_id)])
            os.kill(worker.process_id, signal.SIGSTOP)
            await worker.begin(SEARCH)
            await worker.receive(600)

    pids: list[int] = []
    running = asyncio.create_task(forever())
    await until(lambda: len(pids) == 2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not any(map(runs, pids)))
    await used(sandbox, "cancelled")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_killed_or_unresponsive_worker_fails_only_its_own_job(
    sandbox: Sandbox, number: int
):
    process = await hurt(sandbox, "hurt", number)
    await until(lambda: not runs(process))
    await used(sandbox, "hurt")


def test_a_worker_ends_with_its_server():
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from mcphost.sandbox.processes import SandboxWorker\n"
        "import os\n"
        "worker = SandboxWorker(0)\n"
        "print(worker.process_id, flush=True)\n"
        "sys.stdin.read()\n"
        "os._exit(9)\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin and server.stdout
    worker = int(server.stdout.readline())
    pids = [worker, interpreter_of(worker)]
    assert all(map(runs, pids))
    server.kill()
    server.communicate()
    asyncio.run(until(lambda: not any(map(runs, pids))))


def test_a_worker_that_fails_to_start_raises_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mcphost.sandbox.processes.BINARY", ROOT / "no-such-interpreter")
    with pytest.raises(WorkerLostError, match="did not start"):
        SandboxWorker(0)


@pytest.mark.parametrize("left", [0, 5])
def test_a_worker_that_cannot_be_started_leaves_no_files_or_processes_open(left: int):
    files, children = open_files(), children_of()
    with files_left(left), pytest.raises(WorkerLostError, match=r"did not start.* open files"):
        SandboxWorker(0)
    assert open_files() == files
    assert children_of() == children
