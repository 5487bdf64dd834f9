"""What it costs to wait for people: many calls of session-based clients, each with an open question, on
one worker."""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import asking, load, peers, verify
from bench.listeners import SPARE, make_room, program
from bench.load import Sample
from bench.proc import cpu_seconds, memory_bytes
from bench.processes import free_port, running

CROWD, SMALL_CROWD = 5_000, 100
PASSES, FEW_PASSES = 3, 1
IDLE_SECONDS_PER_PASS = 4


@dataclass(frozen=True, slots=True)
class WaitingFigure:
    """What questions that wait cost.

    `memory` is bytes of the server's per question, its stream included. `idle` is the share of one
    core that the server uses while nothing happens. `alone` and `beside` are the 99th percentiles of
    new calls' latencies, in ms, with no question open and with all; the rates are theirs per second.
    `asking` and `answered` are the seconds until all were asked, and until all that answered had
    their results.
    """

    questions: int
    memory: float
    idle: float
    alone: float
    beside: float
    rate_alone: float
    rate_beside: float
    asking: float
    answered: float
    errors: int


def wait(count: int, seconds: int, passes: int) -> WaitingFigure:
    """Have `count` calls wait for their answers, and make new calls beside them."""
    make_room(2 * count + SPARE)
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder:
        place, port = Path(folder), free_port()
        # Every call has a session of its own, all of one token.
        limits = {"MCPHOST_SESSIONS_PER_TOKEN": str(count)}
        limits["MCPHOST_SESSION_CHANGES_PER_MINUTE"] = str(count)
        ours = peers.ours(place, port, MCPHOST_TOOLS_PATH=str(asking.TOOLS), **limits)
        with running(ours) as pid:
            target = peers.MCPHOST.target(place, port)
            verify.verify(target)
            load.measure(target, 1)
            alone = [load.measure(target, seconds) for _ in range(passes)]
            before = memory_bytes(pid)
            with program("bench.asked", port, count, BENCH_TOKEN=target.token) as crowd:
                asked = json.loads(crowd.next())["asking"]
                memory = (memory_bytes(pid) - before) / count
                idle = _idle(pid, passes * IDLE_SECONDS_PER_PASS)
                beside = [load.measure(target, seconds) for _ in range(passes)]
                answered = json.loads(crowd.ask())["answered"]
    return WaitingFigure(
        questions=count,
        memory=memory,
        idle=idle,
        alone=_p99(alone),
        beside=_p99(beside),
        rate_alone=_rate(alone),
        rate_beside=_rate(beside),
        asking=asked,
        answered=answered,
        errors=sum(sample.errors for sample in (*alone, *beside)),
    )


def _idle(pid: int, seconds: float) -> float:
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / seconds


def _p99(samples: Sequence[Sample]) -> float:
    return median(sample.p99 for sample in samples)


def _rate(samples: Sequence[Sample]) -> float:
    return median(sample.rate for sample in samples)
