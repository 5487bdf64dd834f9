"""Servers side by side: all run, each is measured in turn, several times over."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from bench.figures import Figure, summarise
from bench.load import CONNECTIONS, Sample
from bench.peers import Peer, Served, UnavailableError, serving
from bench.verify import verify

STARTING_AT_ONCE = 2
Samples = dict[str, list[Sample]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often: `passes` times in turn, `seconds` each, after `warm_up` seconds."""

    passes: int
    seconds: int
    warm_up: int


SMOKE = Plan(passes=1, seconds=1, warm_up=0)


def compare(peers: Sequence[Peer], plan: Plan) -> tuple[Figure, ...]:
    """Measure all peers in turn over the usual number of connections (see `compare_each`)."""
    return compare_each(peers, plan, (CONNECTIONS,))[CONNECTIONS]


def compare_each(
    peers: Sequence[Peer], plan: Plan, connections: Sequence[int]
) -> dict[int, tuple[Figure, ...]]:
    """Start every peer that can run, measure all in turn, end them: figures per number of connections.

    What cannot run is named.
    """
    labels = {peer.name: peer.label for peer in peers}
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder, ExitStack() as stack:
        with ThreadPoolExecutor(STARTING_AT_ONCE) as pool:
            started = list(pool.map(lambda peer: _start(peer, Path(folder), stack), peers))
        servers = dict(chain.from_iterable(started))
        samples_by_count = take_turns(servers, plan, connections)
        return {count: summarise(labels, samples) for count, samples in samples_by_count.items()}


def _start(peer: Peer, folder: Path, stack: ExitStack) -> list[tuple[str, Served]]:
    """The peer's name and server; nothing where it cannot run."""
    try:
        return [(peer.name, stack.enter_context(serving(peer, folder / peer.name)))]
    except UnavailableError as reason:
        print(f"{peer.label} is left out: {reason}", file=sys.stderr, flush=True)
        return []


def take_turns(
    servers: Mapping[str, Served], plan: Plan, connections: Sequence[int]
) -> dict[int, Samples]:
    """Measure what runs in turn, after a warm-up: samples per number of connections and name."""
    if plan.warm_up:
        for server in servers.values():
            server.measure(plan.warm_up)
    samples_by_count: dict[int, Samples] = {
        count: {name: [] for name in servers} for count in connections
    }
    for number in range(plan.passes):
        for count in connections:
            print(
                f"pass {number + 1}/{plan.passes}, connections: {count}",
                file=sys.stderr,
                flush=True,
            )
            for name, server in servers.items():
                samples_by_count[count][name].append(_turn(name, server, plan.seconds, count))
    for server in servers.values():
        verify(server.target)
    return samples_by_count


def _turn(name: str, server: Served, seconds: int, connections: int) -> Sample:
    sample = server.measure(seconds, connections)
    sample = replace(sample, cpu_afterwards=server.settle())  # the next server is measured alone
    print(
        f"  {name:<16} {sample.rate:>8,.0f}/s  {sample.cpu_per_call * 1e6:>6,.0f} µs of CPU per call  "
        f"{sample.whole_cpu_per_call * 1e6:>6,.0f} with work afterwards  "
        f"p50 {sample.p50:.2f} ms  p99 {sample.p99:.2f} ms  errors {sample.errors}",
        file=sys.stderr,
        flush=True,
    )
    return sample
