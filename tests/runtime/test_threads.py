"""Threads are reused, limited, carry context variables, and are lost instead of waited for."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from mcphost.runtime import threads as module
from mcphost.runtime.threads import PoolExhaustedError, ToolThreads

colour: ContextVar[str] = ContextVar("colour", default="none")


class Gate:
    """A function that reports that it has begun, and ends when it is released."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.open.wait(10)
        return threading.current_thread().name

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 10)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition that another thread fulfils is true; ten seconds at most."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - threads set no asyncio event
            await asyncio.sleep(0.001)


async def test_an_exception_of_a_function_is_raised_at_its_await() -> None:
    def fail() -> None:
        raise LookupError("gone")

    pool = ToolThreads(1)
    with pytest.raises(LookupError, match="gone"):
        await pool.run("acme", fail)
    assert pool.in_use("acme") == 0


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()])
async def test_an_exit_in_a_thread_is_raised_at_its_await(error: BaseException) -> None:
    def leave() -> None:
        raise error

    with pytest.raises(type(error)):
        await ToolThreads(1).run("acme", leave)


async def test_a_thread_gets_a_copy_of_the_context_variables() -> None:
    def paint() -> str:
        seen = colour.get()
        colour.set("red")
        return seen

    colour.set("blue")
    assert await ToolThreads(1).run("acme", paint) == "blue"
    assert colour.get() == "blue"


async def test_the_thread_limit_counts_per_owner() -> None:
    pool, gate = ToolThreads(1), Gate()
    running = asyncio.ensure_future(pool.run("acme", gate))
    await gate.has_begun()
    with pytest.raises(PoolExhaustedError):
        await pool.run("acme", lambda: None)
    assert await pool.run("globex", lambda: "served") == "served"
    gate.open.set()
    await running
    assert await pool.run("acme", lambda: "served") == "served"


@pytest.mark.parametrize(("per_tool", "cap"), [(1, None), (None, 1), (5, 1)])
async def test_one_tool_cannot_use_all_threads_of_its_owner(per_tool: int | None, cap: int | None):
    pool, gate = ToolThreads(2, per_tool), Gate()
    running = asyncio.ensure_future(pool.run("acme", gate, tool="slow", cap=cap))
    await gate.has_begun()
    with pytest.raises(PoolExhaustedError):
        await pool.run("acme", lambda: None, tool="slow", cap=cap)
    assert pool.in_use("acme") == 1
    assert await pool.run("acme", lambda: "served", tool="quick", cap=cap) == "served"
    gate.open.set()
    await running


async def test_a_cancelled_caller_leaves_a_lost_thread_that_counts_until_it_ends() -> None:
    pool, gate = ToolThreads(1), Gate()
    running = asyncio.ensure_future(pool.run("acme", gate))
    await gate.has_begun()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (pool.lost, pool.busy) == (1, 1)
    with pytest.raises(PoolExhaustedError):
        await pool.run("acme", lambda: None)
    assert pool.busy == 1
    gate.open.set()
    await until(lambda: pool.lost == 0)
    assert pool.busy == 0
    assert pool.in_use("acme") == 0
    assert pool.idle == 0


async def test_a_caller_cancelled_after_the_function_ended_loses_no_thread() -> None:
    pool = ToolThreads(1)
    running = asyncio.ensure_future(pool.run("acme", lambda: None))
    await asyncio.sleep(0)
    # This blocks the loop, so the thread ends but its result is not yet delivered.
    while pool.in_use("acme"):
        threading.Event().wait(0.001)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert pool.lost == 0
    assert await pool.run("acme", lambda: "served") == "served"


def tool_threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.startswith("tool-")}


async def test_surplus_idle_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_IDLE", 1)
    pool, gates = ToolThreads(3), [Gate(), Gate(), Gate()]
    before = tool_threads()
    running = [asyncio.ensure_future(pool.run("acme", gate)) for gate in gates]
    for gate in gates:
        await gate.has_begun()
        gate.open.set()
    await asyncio.gather(*running)
    await until(lambda: len(tool_threads() - before) == 1)
    assert pool.idle == 1


async def test_a_machine_that_cannot_start_threads_raises_pool_exhausted(
    monkeypatch: pytest.MonkeyPatch,
):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool = ToolThreads(1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(PoolExhaustedError, match="machine"):
            await pool.run("acme", lambda: None)
    assert pool.in_use("acme") == 0
    assert await pool.run("acme", lambda: "served") == "served"


def test_a_result_for_a_closed_loop_is_dropped() -> None:
    pool, gate = ToolThreads(1), Gate()

    async def leave_early() -> None:
        running = asyncio.ensure_future(pool.run("acme", gate))
        await gate.has_begun()
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(leave_early())
    gate.open.set()

    async def come_back() -> str:
        await until(lambda: pool.lost == 0)
        return await pool.run("acme", lambda: "served")

    assert asyncio.run(come_back()) == "served"


def test_a_function_that_never_returns_does_not_block_interpreter_exit() -> None:
    program = (
        "import asyncio, threading\n"
        "from mcphost.runtime.threads import ToolThreads\n"
        "async def main():\n"
        "    call = ToolThreads(1).run('acme', threading.Event().wait)\n"
        "    try: await asyncio.wait_for(call, 0.05)\n"
        "    except TimeoutError: print('left')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout == "left\n"
