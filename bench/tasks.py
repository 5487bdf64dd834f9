"""Calls that become tasks: what does one cost, and what one that waits? Beside FastMCP's."""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from bench import asking, environment, peers
from bench.listeners import Lines, program
from bench.load import LoadError
from bench.passes import Plan
from bench.peers import Peer, UnavailableError, serving
from bench.proc import cpu_seconds, memory_bytes
from bench.processes import Command

CROWDS, SMALL_CROWDS = (2_000, 10_000), (20, 100)
WARM, AT_A_TIME = 400, 100
STARTING_AT_ONCE = 4
# Many clients; and few, who poll as often as they can. The same pauses for every server.
MANY: Mapping[str, Any] = {"tool": "echo_later", "clients": 64, "pause": 0.1}
QUICK: Mapping[str, Any] = {"tool": "ask_later", "clients": 2, "pause": 0.002}


class Percentiles(NamedTuple):
    """In milliseconds."""

    p50: float
    p95: float


class Waited(NamedTuple):
    """Tasks that wait for an answer: how many, the bytes of memory for each, and the seconds until all
    were asked."""

    tasks: int
    memory: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Followed:
    """A process that serves and runs tasks, and the clients that follow these."""

    pid: int
    clients: Lines

    def ask(self, **options: Any) -> Mapping[str, Any]:
        reply: Mapping[str, Any] = json.loads(self.clients.ask(json.dumps(options)))
        return reply


@dataclass(frozen=True, slots=True)
class Turn:
    """One pass. CPU is in seconds, of the server, with the rounds that it runs; the clients' beside it.
    Latencies are in milliseconds, of one task after another from its answer to its result."""

    tasks: int
    polls: int
    seconds: float
    cpu: float
    clients_cpu: float
    answered: Sequence[float]


@dataclass(frozen=True, slots=True)
class TasksFigure:
    """A server's row: medians over the passes. CPU is in seconds per task, `ratio` that over FastMCP's,
    None without it."""

    name: str
    label: str
    rate: float
    low: float
    high: float
    cpu: float
    ratio: float | None
    polls: float
    clients_cpu: float
    answered: Percentiles
    waited: Sequence[Waited]


def _server_command(folder: Path, port: int, **more: str) -> Command:
    room = str(2 * CROWDS[-1])
    limits = {"MCPHOST_TASKS_PER_CALLER": room, "MCPHOST_TASKS_PER_TENANT": room}
    tools = {"MCPHOST_TOOLS_PATH": str(asking.TOOLS)}
    return peers.mcphost_command(folder, port, **tools, **limits, **more)


def _fastmcp(folder: Path, port: int) -> Command:
    try:
        python = environment.fastmcp_tasks_python()
    except environment.EnvironmentMissingError as error:
        raise UnavailableError(str(error)) from error
    argv = [str(python), str(peers.SERVERS / "fastmcp_tasks_server.py"), str(port)]
    return Command(argv, folder / "log", port)


def _embedded(folder: Path, port: int) -> Command:
    return _server_command(folder, port, MCPHOST_TASK_ENGINE="embedded")


FASTMCP = Peer("fastmcp", "FastMCP 4.1.4, in memory", _fastmcp, peers.FASTMCP.target)
ALL = (
    replace(peers.MCPHOST, command=_server_command),
    replace(
        peers.ON_POSTGRESQL,
        name="mcphost-embedded",
        label="mcphost on PostgreSQL, `embedded`",
        command=_embedded,
    ),
    replace(
        peers.ON_POSTGRESQL,
        name="mcphost-queued",
        label="mcphost on PostgreSQL, `procrastinate`",
        command=_server_command,
    ),
    FASTMCP,
)


def compare(plan: Plan, crowds: Sequence[int], names: Sequence[str]) -> tuple[TasksFigure, ...]:
    """Load the servers of those names in turn; then have so many tasks wait on each of them, `crowds` in
    rising order. What cannot run is named."""
    selected_peers = [peer for peer in ALL if peer.name.partition("-")[0] in names]
    turns: dict[str, list[Turn]] = {}
    with ExitStack() as stack:
        with ThreadPoolExecutor(STARTING_AT_ONCE) as pool:
            started = list(pool.map(lambda peer: _start(peer, stack), selected_peers))
        servers = dict(pair for pairs in started for pair in pairs)
        if plan.warm_up:
            for served in servers.values():
                _turn(served, plan.warm_up)
        for number in range(plan.passes):
            for name, served in servers.items():
                turn = _turn(served, plan.seconds)
                turns.setdefault(name, []).append(turn)
                _print_turn(f"pass {number + 1}/{plan.passes}", name, turn)
        waited = {name: _wait(name, served, crowds) for name, served in servers.items()}
    return summarise({peer.name: peer.label for peer in selected_peers}, turns, waited)


def _start(peer: Peer, stack: ExitStack) -> list[tuple[str, Followed]]:
    """The peer's name and server; nothing where it cannot run."""
    try:
        return [(peer.name, stack.enter_context(_followed(peer)))]
    except UnavailableError as reason:
        print(f"{peer.label} is left out: {reason}", file=sys.stderr, flush=True)
        return []


@contextmanager
def _followed(peer: Peer) -> Iterator[Followed]:
    """A server, and clients that wait to be told what to do."""
    with (
        tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder,
        serving(peer, Path(folder)) as served,
        program("bench.followers", served.target.url, BENCH_TOKEN=served.target.token) as clients,
    ):
        yield Followed(served.pid, clients)


def _turn(served: Followed, seconds: int) -> Turn:
    before = cpu_seconds(served.pid)
    many = served.ask(**MANY, seconds=seconds)
    spent = cpu_seconds(served.pid) - before
    if many["tasks"] < 2:
        raise LoadError("no task has ended")
    few = served.ask(**QUICK, seconds=seconds)
    return Turn(
        tasks=many["tasks"],
        polls=many["polls"],
        seconds=many["seconds"],
        cpu=spent,
        clients_cpu=many["cpu"],
        answered=few["answered"],
    )


def _wait(name: str, served: Followed, crowds: Sequence[int]) -> list[Waited]:
    """Memory is held against that before the first task of the crowds, the load is over by then."""
    served.ask(wait=min(WARM, crowds[0]))  # what the first tasks load is no part of the others
    before, seconds = memory_bytes(served.pid), 0.0
    waits = []
    for fewer, crowd in pairwise((0, *crowds)):
        parts = [min(AT_A_TIME, crowd - begun) for begun in range(fewer, crowd, AT_A_TIME)]
        seconds += sum(served.ask(wait=part)["seconds"] for part in parts)
        waits.append(Waited(crowd, (memory_bytes(served.pid) - before) / crowd, seconds))
        print(
            f"{name:<18} {waits[-1].memory:,.0f} bytes for each of {crowd:,}, asked in {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
    return waits


def summarise(
    labels: Mapping[str, str],
    turns: Mapping[str, Sequence[Turn]],
    waited: Mapping[str, Sequence[Waited]],
) -> tuple[TasksFigure, ...]:
    """A figure per server. Each has one turn per pass, in the same order."""
    return tuple(
        _figure(name, labels[name], own, turns.get(FASTMCP.name), waited[name])
        for name, own in turns.items()
    )


def _figure(
    name: str,
    label: str,
    own: Sequence[Turn],
    baseline: Sequence[Turn] | None,
    waited: Sequence[Waited],
) -> TasksFigure:
    rates = [turn.tasks / turn.seconds for turn in own]
    answered = quantiles([duration for turn in own for duration in turn.answered], n=100)
    return TasksFigure(
        name=name,
        label=label,
        rate=median(rates),
        low=min(rates),
        high=max(rates),
        cpu=median(turn.cpu / turn.tasks for turn in own),
        ratio=_ratio(own, baseline) if baseline else None,
        polls=median(turn.polls / turn.tasks for turn in own),
        clients_cpu=median(turn.clients_cpu / turn.tasks for turn in own),
        answered=Percentiles(answered[49], answered[94]),
        waited=waited,
    )


def _ratio(own: Sequence[Turn], baseline: Sequence[Turn]) -> float:
    """Within a pass the machine was the same for both: the ratio outlives its drift."""
    pairs = zip(own, baseline, strict=True)
    return median((a.cpu / a.tasks) / (b.cpu / b.tasks) for a, b in pairs)


def _print_turn(progress: str, name: str, turn: Turn) -> None:
    print(
        f"{progress}  {name:<18} {turn.tasks / turn.seconds:>6,.0f}/s  "
        f"{turn.cpu / turn.tasks * 1e3:.2f} ms of CPU per task, {turn.polls / turn.tasks:.1f} polls  "
        f"answered in {median(turn.answered):.1f} ms",
        file=sys.stderr,
        flush=True,
    )
