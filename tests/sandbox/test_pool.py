"""The pool of workers: whom a worker serves, for how long, and what happens when it is lost."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from mcphost.sandbox.frames import LARGEST, BrokenFrame
from mcphost.sandbox.pool import MOST_BUSY_SECONDS, MOST_JOBS, Sandbox, SandboxFull
from mcphost.sandbox.processes import ROOT, SandboxWorker, WorkerLost
from tests.sandbox.processes import interpreter_of, runs, until


async def used(sandbox: Sandbox, tenant: str) -> int:
    """Do one job, and return the process that did it."""
    async with sandbox.worker(tenant) as worker:
        await worker.begin({"do": "search", "expression": "a", "data": {"a": 1}})
        assert await worker.receive(20) == {"is": "done", "value": 1}
        return worker.process_id


async def test_no_worker_serves_two_tenants(sandbox: Sandbox):
    served: dict[str, set[int]] = {}

    async def call(tenant: str) -> None:
        served.setdefault(tenant, set()).add(await used(sandbox, tenant))

    tenants = [f"tenant {number % 6}" for number in range(30)]
    await asyncio.gather(*map(call, tenants))
    everything = [process for processes in served.values() for process in processes]
    assert len(served) == 6
    assert len(everything) == len(set(everything))


async def test_a_tenant_gets_its_own_worker_again(sandbox: Sandbox):
    assert await used(sandbox, "again") == await used(sandbox, "again")


@pytest.mark.parametrize(
    ("field", "value"), [("jobs", MOST_JOBS), ("busy_seconds", MOST_BUSY_SECONDS)]
)
async def test_a_worker_is_replaced_after_its_share_of_work(
    sandbox: Sandbox, field: str, value: float
):
    async with sandbox.worker("replaced") as worker:
        await worker.begin({"do": "search", "expression": "a", "data": {}})
        await worker.receive(20)
        setattr(worker, field, value)
        before = worker.process_id
    assert await used(sandbox, "replaced") != before
    await until(lambda: not runs(before))


async def test_a_tenant_that_uses_its_share_leaves_the_rest_to_others():
    sandbox = Sandbox(2, wait_seconds=0.2)
    try:
        await used(sandbox, "globex")
        async with sandbox.worker("acme"):
            with pytest.raises(SandboxFull):
                await used(sandbox, "acme")
            await used(sandbox, "globex")
    finally:
        sandbox.close()


async def test_who_waits_gets_the_next_worker_that_is_free(sandbox: Sandbox):
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(sandbox.worker("waits"))
        waiting = asyncio.create_task(used(sandbox, "waits"))
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting


async def test_who_gives_up_waiting_takes_no_worker_away(sandbox: Sandbox):
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(sandbox.worker("gives up"))
        waiting = [asyncio.create_task(used(sandbox, "gives up")) for _ in range(5)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert sandbox.in_use == 2
    assert sandbox.in_use == 0
    await used(sandbox, "gives up")


async def test_a_cancelled_start_leaves_its_place_free():
    sandbox = Sandbox(1, wait_seconds=30)
    try:
        starting = asyncio.create_task(used(sandbox, "acme"))
        await asyncio.sleep(0)  # it has asked for a worker
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await until(lambda: sandbox.in_use == 0)
        await used(sandbox, "globex")
    finally:
        sandbox.close()


async def test_a_cancelled_job_ends_its_worker_and_the_interpreter(sandbox: Sandbox):
    async def forever() -> None:
        async with sandbox.worker("cancelled") as worker:
            pids.extend([worker.process_id, interpreter_of(worker.process_id)])
            os.kill(worker.process_id, signal.SIGSTOP)
            await worker.begin({"do": "search", "expression": "a", "data": {}})
            await worker.receive(600)

    pids: list[int] = []
    running = asyncio.create_task(forever())
    await until(lambda: len(pids) == 2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not any(map(runs, pids)))
    await used(sandbox, "cancelled")


async def test_a_killed_worker_costs_its_job_only(sandbox: Sandbox):
    with pytest.raises(WorkerLost):
        async with sandbox.worker("killed") as worker:
            os.kill(worker.process_id, signal.SIGKILL)
            await worker.begin({"do": "search", "expression": "a", "data": {}})
            await worker.receive(20)
    await used(sandbox, "killed")


async def test_a_worker_that_stops_answering_is_killed(sandbox: Sandbox):
    with pytest.raises(WorkerLost) as lost:
        async with sandbox.worker("stopped") as worker:
            process = worker.process_id
            os.kill(process, signal.SIGSTOP)
            await worker.begin({"do": "search", "expression": "a", "data": {}})
            await worker.receive(0.1)
    assert lost.value.late
    await until(lambda: not runs(process))


async def test_a_message_that_is_too_large_is_not_sent(sandbox: Sandbox):
    async with sandbox.worker("large") as worker:
        with pytest.raises(BrokenFrame):
            await worker.begin({"do": "search", "expression": "a", "data": "x" * LARGEST})
        with pytest.raises(BrokenFrame):
            await worker.begin({"do": "search", "expression": "a", "data": object()})
        assert worker.reusable
    await used(sandbox, "large")


async def test_the_pool_serves_several_event_loops(sandbox: Sandbox):
    here = await used(sandbox, "loops")
    there = await asyncio.to_thread(lambda: asyncio.run(used(sandbox, "loops")))
    assert here == there


async def test_one_worker_is_kept_ready_for_the_next_tenant():
    sandbox = Sandbox(3, wait_seconds=30)
    try:
        await used(sandbox, "acme")
        await until(lambda: sandbox.idle == 2)
        await used(sandbox, "globex")
        await until(lambda: sandbox.idle == 2 or sandbox.idle == 3)
    finally:
        sandbox.close()
    assert sandbox.idle == 0


def test_a_worker_ends_with_the_server_that_started_it():
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


async def test_a_closed_pool_keeps_no_process():
    sandbox = Sandbox(2, wait_seconds=30)
    process = await used(sandbox, "acme")
    sandbox.close()
    await until(lambda: not runs(process))


def test_a_worker_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mcphost.sandbox.processes.BINARY", ROOT / "no-such-interpreter")
    with pytest.raises(WorkerLost, match="did not start"):
        SandboxWorker(0)
