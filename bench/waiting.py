"""What it costs to wait for people: many calls of session-based clients, each with an open question, on
one worker; and fewer of them, beside the Python SDK's server."""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import asking, load, peers, verify
from bench.listeners import SPARE, Lines, make_room, program
from bench.load import Sample
from bench.peers import Peer, UnavailableError, serving
from bench.proc import cpu_seconds, memory_bytes
from bench.processes import free_port, running

CROWD, SMALL_CROWD = 5_000, 100
PASSES, FEW_PASSES = 3, 1
IDLE_SECONDS_PER_PASS = 4
# Beside the SDK: so many, and then as many again.
HALF, SMALL_HALF = 1_000, 50
FEW = 20


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


class SetUp(NamedTuple):
    """One turn of a server: the bytes of memory for each call that waits, and how many were set up a
    second, at first and beside as many."""

    memory: float
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class SetUpFigure:
    """A server's row: medians over the turns. `rate` is that of setting up all, in two halves of
    `questions` each; `memory` is of the first half."""

    label: str
    questions: int
    memory: float
    first: float
    second: float
    rate: float


def wait(count: int, seconds: int, passes: int) -> WaitingFigure:
    """Have `count` calls wait for their answers, and make new calls beside them."""
    make_room(2 * count + SPARE)
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder:
        data_folder, port = Path(folder), free_port()
        # Every call has a session of its own.
        with running(asking.with_room(count, count)(data_folder, port)) as pid:
            target = peers.MCPHOST.target(data_folder, port)
            verify.verify(target)
            load.measure(target, 1)
            alone = [load.measure(target, seconds) for _ in range(passes)]
            before = memory_bytes(pid)
            with program("bench.asked", target.url, count, BENCH_TOKEN=target.token) as crowd:
                asking_seconds = json.loads(crowd.next())["asking"]
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
        asking=asking_seconds,
        answered=answered,
        errors=sum(sample.errors for sample in (*alone, *beside)),
    )


def set_up(servers: Sequence[Peer], count: int, passes: int) -> tuple[SetUpFigure, ...]:
    """Have `count` calls wait, and as many again beside them, on each of the servers in turn; each turn
    starts it anew. What cannot run is named."""
    make_room(4 * count + SPARE)
    turns: dict[str, list[SetUp]] = {}
    for number in range(passes):
        for peer in servers:
            try:
                turn = _set_up(peer, count)
            except UnavailableError as reason:
                print(f"{peer.label} is left out: {reason}", file=sys.stderr, flush=True)
                continue
            turns.setdefault(peer.label, []).append(turn)
            print(
                f"pass {number + 1}/{passes}  {peer.name:<18} {turn.memory / 1024:.1f} KiB for each  "
                f"{turn.first:,.0f}/s, then {turn.second:,.0f}/s",
                file=sys.stderr,
                flush=True,
            )
    return tuple(
        SetUpFigure(
            label=label,
            questions=count,
            memory=median(turn.memory for turn in own),
            first=median(turn.first for turn in own),
            second=median(turn.second for turn in own),
            rate=median(2 / (1 / turn.first + 1 / turn.second) for turn in own),
        )
        for label, own in turns.items()
    )


def _set_up(peer: Peer, count: int) -> SetUp:
    with (
        tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder,
        serving(peer, Path(folder)) as served,
    ):

        def crowd(size: int) -> AbstractContextManager[Lines]:
            target = served.target
            return program("bench.asked", target.url, size, BENCH_TOKEN=target.token)

        with crowd(FEW) as few:  # what is loaded at the first question is no part of the others
            few.next()
            few.ask()
        before = memory_bytes(served.pid)
        with crowd(count) as first:
            took = json.loads(first.next())["asking"]
            memory = (memory_bytes(served.pid) - before) / count
            with crowd(count) as second:
                return SetUp(memory, count / took, count / json.loads(second.next())["asking"])


def _idle(pid: int, seconds: float) -> float:
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / seconds


def _p99(samples: Sequence[Sample]) -> float:
    return median(sample.p99 for sample in samples)


def _rate(samples: Sequence[Sample]) -> float:
    return median(sample.rate for sample in samples)
