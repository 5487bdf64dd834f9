"""Malicious scripts: each fails its own call only."""

import asyncio
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from mcphost.kinds.script import program as programs
from mcphost.kinds.script.functions import MAX_REQUESTS
from mcphost.kinds.script.program import MAX_PRINTED
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from mcphost.sandbox.frames import MAX_FRAME
from mcphost.sandbox.pool import Sandbox
from tests.kinds.rounds import TENANT
from tests.kinds.rounds_with_client import accept, asking_call
from tests.kinds.script.script_calls import DrivenScript, compiled
from tests.sandbox.processes import children_of, until
from tests.work_counts import Work

SECRET = "a secret of the server"
OWNED = "mcphost-owned"
TURN_SECONDS = 0.5
"""Less than in production: what never ends computes for so long."""
HELLO = "def f() -> str:\n return 'hello'"

ENDLESS = {
    "a loop": "while True: pass",
    "a loop that catches": "while True:\n  try:\n   while True: pass\n  except BaseException: pass",
    "a loop in finally": "try:\n  return 1\n finally:\n  while True: pass",
    "a loop of calls": "while True: log('x')",
}
LARGE = {
    "a list": "x = []\n while True: x.append('x' * 1000)",
    "a dict": "x = {}\n while True: x[len(x)] = [0] * 100",
    "a power": "return 2 ** (10 ** 9)",
    "a replaced text": "return ('x' * 10**6).replace('x', 'y' * 10**6)",
    "bytes": "return bytes(10**10)",
    "a factorial": "import math\n return math.factorial(10**7)",
    "a decimal": "import decimal\n return decimal.Decimal(10) ** 10**9",
    "regular matches": "import re\n return re.findall('', 'x' * 10**8)",
}
DEEP = {
    "recursion": "def g(n): return g(n + 1)\n return g(0)",
    "a deep repr": "x = []\n for _ in range(10**5): x = [x]\n return str(x)",
    "a deep comparison": "x, y = [], []\n for _ in range(10**5): x, y = [x], [y]\n return x == y",
    "a deep result": "x = []\n for _ in range(10**4): x = [x]\n return x",
    "a circle": "x = {}\n x['x'] = x\n return x",
}
WRITES = {
    "prints": f"for _ in range(10**9): print('x' * {MAX_PRINTED // 8})",
    "a large result": f"return 'x' * {2 * MAX_FRAME}",
    "a large log": f"log('x' * {2 * MAX_FRAME})",
    "many logs": "for _ in range(900): log('x' * 1000)",
    "a large question": f"elicit('a', 'x' * {2 * MAX_FRAME}, {{'name': str}})",
}
HOST = {
    "a file": "return open('/etc/passwd').read()",
    "a written file": "open('/tmp/mcphost-owned', 'w').write('x')",
    "the environment": "import os\n return dict(os.environ)",
    "a process": "import subprocess\n subprocess.run(['id'])",
    "a socket": "import socket\n socket.socket()",
    "ctypes": "import ctypes\n return ctypes.CDLL(None)",
    "an import": "return __import__('os').system('id')",
    "classes": "return ().__class__.__base__.__subclasses__()",
    "frames": "import sys\n return sys._getframe().f_globals",
    "a function's globals": "return elicit.__globals__",
    "eval": 'return eval(\'__import__("os").system("id")\')',
    "builtins": "return __builtins__",
    "a format string": "return '{0.__class__.__init__.__globals__}'.format(log)",
    "the worker": "import pydantic_monty",
    "the inner request": "return _answers",
    "os._exit": "import os\n os._exit(0)",
    "a signal": "import signal\n signal.raise_signal(9)",
}
EVERY = {**ENDLESS, **LARGE, **DEEP, **WRITES, **HOST}


def written() -> list[str]:
    return [one.name for one in Path("/tmp").iterdir()]


def script(body: str) -> str:
    return f"def f():\n {body}"


@pytest.mark.parametrize("name", EVERY)
async def test_an_attack_fails_its_own_call_and_the_next_call_works(sandbox, name, monkeypatch):
    monkeypatch.setenv("MCPHOST_SECRET_KEY", SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(
            programs, "LIMITS", {**programs.LIMITS, "max_turn_duration_secs": TURN_SECONDS}
        )
        outcome = await DrivenScript(script(EVERY[name]), sandbox).advance()
    assert isinstance(outcome, Failed | Complete), outcome
    text = str(outcome)
    assert SECRET not in text and "root:" not in text and "uid=" not in text
    if name not in HARMLESS:
        assert isinstance(outcome, Failed), outcome
        assert name not in ENDLESS or outcome.error.kind in (
            FailureKind.TIMED_OUT,
            FailureKind.CRASHED,
        )
    assert await DrivenScript(HELLO, sandbox).completes() == "hello"
    assert OWNED not in written()


HARMLESS = {"a deep comparison", "a circle", "a deep repr", "builtins"}
"""These end, and show nothing."""


async def test_a_regular_expression_takes_no_exponential_time(sandbox: Sandbox):
    body = "import re\n return bool(re.match('(a+)+$', 'a' * 5000 + 'b'))"
    assert await DrivenScript(script(body), sandbox).completes() is False


async def test_a_script_that_exceeds_its_round_is_killed(sandbox: Sandbox):
    source = "import time\ndef f():\n while True: time.sleep(10)"
    before = set(children_of())
    failure = await DrivenScript(source, sandbox, seconds=0.3).fails()
    assert failure.kind is FailureKind.TIMED_OUT
    await until(lambda: sandbox.in_use == 0)
    assert await DrivenScript(HELLO, sandbox).completes() == "hello"
    assert len(set(children_of()) - before) <= 4  # the pool has no more


async def test_a_cancelled_call_kills_its_script(sandbox: Sandbox):
    source = "def f():\n while True: pass"
    program = compiled(source, sandbox)
    driven = DrivenScript(source, sandbox)
    running = asyncio.create_task(program.advance(driven.call, driven.journal, driven.outside))
    await until(lambda: sandbox.in_use == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: sandbox.in_use == 0)
    assert await DrivenScript(HELLO, sandbox).completes() == "hello"


async def test_a_killed_interpreter_fails_only_its_own_call():
    source = "import time\ndef f():\n while True: log('on')"
    before = set(children_of())
    with closing(Sandbox(1, wait_seconds=30)) as sandbox:
        driven = DrivenScript(source, sandbox)
        running = asyncio.create_task(driven.fails())
        await until(lambda: bool(driven.notes.logged))
        for worker in set(children_of()) - before:
            for interpreter in children_of(worker):
                os.kill(interpreter, signal.SIGKILL)
        assert (await running).kind is FailureKind.CRASHED
        assert await DrivenScript(HELLO, sandbox).completes() == "hello"


async def test_the_number_of_requests_per_call_is_limited(sandbox: Sandbox):
    source = """
    def f() -> int:
        sent = 0
        try:
            while True:
                http.get(f"https://x.example/{sent}")
                sent += 1
        except RuntimeError:
            return sent
    """
    driven = DrivenScript(source, sandbox)
    assert await driven.completes() == MAX_REQUESTS
    assert len(driven.http.requests) == MAX_REQUESTS


async def test_the_request_limit_counts_all_rounds_of_a_call(sandbox: Sandbox):
    source = """
    def f() -> int:
        http.get("https://x.example/first")
        elicit("more", "More?", {"yes": bool})
        sent = 1
        try:
            while True:
                http.get(f"https://x.example/{sent}")
                sent += 1
        except RuntimeError:
            return sent
    """
    driven = DrivenScript(source, sandbox)
    assert await driven.asks() == ["more"]
    assert await driven.completes(more=accept(yes=True)) == MAX_REQUESTS


async def test_a_large_argument_is_refused(sandbox: Sandbox):
    call = asking_call({"text": "x" * MAX_FRAME})
    failure = await DrivenScript("def f(text: str): return 1", sandbox, call).fails()
    assert failure.kind is FailureKind.CRASHED
    assert await DrivenScript(HELLO, sandbox).completes() == "hello"


async def test_attacks_by_one_tenant_delay_no_call_of_another(sandbox: Sandbox):
    """The other tenant has its calls answered while all attacks still run."""
    other = asking_call()._replace(tenant=TENANT.__class__(int=7))
    assert await DrivenScript(HELLO, sandbox, other).completes() == "hello"
    attacks = [
        asyncio.create_task(DrivenScript(script(ENDLESS["a loop"]), sandbox).advance())
        for _ in range(2)
    ]
    await until(lambda: sandbox.in_use == 2)
    for _ in range(20):
        assert await DrivenScript(HELLO, sandbox, other).completes() == "hello"
    assert not any(attack.done() for attack in attacks)
    for attack in attacks:
        attack.cancel()
    await asyncio.gather(*attacks, return_exceptions=True)


async def test_the_event_loop_stays_responsive_while_a_script_floods(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    """Counts the lines of Python of each pass: those for all calls that a script may make, at most, and none
    for each byte."""
    loop, passes = asyncio.get_running_loop(), []
    run_once = loop._run_once  # type: ignore[attr-defined]  # waits, and runs all that is ready

    with Work() as work:

        def counted() -> None:
            before = work.steps
            run_once()
            passes.append(work.steps - before)

        monkeypatch.setattr(loop, "_run_once", counted)
        for body in (
            WRITES["prints"],
            f"return 'x' * {MAX_FRAME // 2}",
            ENDLESS["a loop of calls"],
        ):
            await DrivenScript(script(body), sandbox).advance()
        monkeypatch.undo()
    assert 100 < max(passes) < MAX_FRAME // 8
