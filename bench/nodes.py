"""Does a second process cost more than it brings? One and two nodes on PostgreSQL and Redis."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import peers, verify
from bench.load import CONNECTIONS, Sample
from bench.passes import Plan
from bench.peers import Served
from bench.processes import free_port, running
from tests.e2e import shared_services


class Load(NamedTuple):
    """How many nodes are loaded, each over how many connections."""

    nodes: int
    connections: int


SINGLE = Load(1, CONNECTIONS)
TWICE = Load(2, CONNECTIONS)
HALF = Load(1, CONNECTIONS // 2)
SHARED = Load(2, CONNECTIONS // 2)
LOADS = (SINGLE, TWICE, HALF, SHARED)


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement of a service: calls a second in all, and CPU seconds per call of its nodes."""

    rate: float
    cpu: float
    errors: int


@dataclass(frozen=True, slots=True)
class NodesFigure:
    """A load's row: medians over the passes. `ratio` is the CPU per call over that of one node."""

    load: Load
    rate: float
    cpu: float
    ratio: float
    errors: int


def compare(plan: Plan) -> tuple[NodesFigure, ...]:
    """Start a service of one node and another of two, and load them in turn."""
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder, ExitStack() as stack:
        counts = sorted({load.nodes for load in LOADS})
        with ThreadPoolExecutor(len(counts)) as pool:
            places = [_service(Path(folder) / str(count), count) for count in counts]
            services = dict(zip(counts, pool.map(stack.enter_context, places), strict=True))
        if plan.warm_up:
            for load in LOADS:
                _turn(services[load.nodes], load, plan.warm_up)
        turns: dict[Load, list[Turn]] = {load: [] for load in LOADS}
        for number in range(plan.passes):
            for load in LOADS:
                turn = _turn(services[load.nodes], load, plan.seconds)
                turns[load].append(turn)
                print(
                    f"pass {number + 1}/{plan.passes}  {load.nodes} x {load.connections:<2} "
                    f"{turn.rate:>9,.0f}/s  {turn.cpu * 1e6:.0f} µs of CPU per call  "
                    f"errors {turn.errors}",
                    flush=True,
                )
        return summarise(turns)


def summarise(turns: Mapping[Load, Sequence[Turn]]) -> tuple[NodesFigure, ...]:
    """A figure per load. Each has one turn per pass, in the same order."""
    return tuple(
        NodesFigure(
            load=load,
            rate=median(turn.rate for turn in own),
            cpu=median(turn.cpu for turn in own),
            # Within a pass the machine was the same for both: the ratio outlives its drift.
            ratio=median(a.cpu / b.cpu for a, b in zip(own, turns[SINGLE], strict=True)),
            errors=sum(turn.errors for turn in own),
        )
        for load, own in turns.items()
    )


@contextmanager
def _service(folder: Path, count: int) -> Iterator[list[Served]]:
    """Nodes over a database and a Redis of their own, with one data folder."""
    folder.mkdir(parents=True)
    with (
        shared_services.database() as database,
        shared_services.redis(folder) as redis,
        ExitStack() as stack,
    ):
        shared = {"DATABASE_URL": database, "REDIS_URL": redis.url}
        yield [_start(stack, folder, number, shared) for number in range(count)]


def _start(stack: ExitStack, folder: Path, number: int, shared: Mapping[str, str]) -> Served:
    port = free_port()
    command = peers.mcphost_command(folder, port, log=f"log-{number}", **shared)
    pid = stack.enter_context(running(command))
    target = peers.MCPHOST.target(folder, port)
    verify.verify(target)
    return Served(pid, target)


def _turn(service: Sequence[Served], load: Load, seconds: int) -> Turn:
    """Load all nodes at once."""
    with ThreadPoolExecutor(len(service)) as pool:
        samples = list(pool.map(lambda node: node.measure(seconds, load.connections), service))
    return _of(samples)


def _of(samples: Sequence[Sample]) -> Turn:
    calls = sum(sample.requests for sample in samples)
    return Turn(
        rate=sum(sample.rate for sample in samples),
        cpu=sum(sample.cpu for sample in samples) / calls,
        errors=sum(sample.errors for sample in samples),
    )
