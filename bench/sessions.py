"""Whole sessions of the official Python client: what do they cost beside the Python SDK's server?"""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from bench import asking, peers
from bench.clients import MODES, STEPS
from bench.listeners import Lines, program
from bench.load import LoadError
from bench.passes import Plan
from bench.peers import Peer, Served, UnavailableError, serving
from bench.proc import cpu_seconds

CROWD, SMALL_CROWD = 40, 5
# A session takes long beside the call of another scenario.
TIMES_AS_LONG = 3
SESSION_BASED, STATELESS = MODES
# Sessions of one token, at one time and begun or ended in a minute: no limit of ours is measured.
ROOM, CHANGES_PER_MINUTE = 10_000, 1_000_000


class Percentiles(NamedTuple):
    """Of one step, in milliseconds."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Turn:
    """The sessions of one pass. `cpu` is in seconds, of all threads of the server's process;
    `clients_cpu` is that of the clients'. `steps` has the milliseconds of each."""

    sessions: int
    seconds: float
    errors: int
    cpu: float
    clients_cpu: float
    steps: Mapping[str, Sequence[float]]

    @property
    def cpu_per_session(self) -> float:
        return self.cpu / max(self.sessions, 1)


@dataclass(frozen=True, slots=True)
class SessionsFigure:
    """A server's row. CPU is in seconds per session, the clients' beside the server's; `ratio` is its
    CPU over that of the SDK's server, the median of the passes, and None without that server."""

    name: str
    label: str
    cpu: float
    low: float
    high: float
    ratio: float | None
    rate: float
    clients_cpu: float
    steps: Mapping[str, Percentiles]
    errors: int


def servers(revision: str) -> tuple[Peer, ...]:
    """Ours on either database, and the SDK's as it has to be for that revision."""
    command = asking.with_room(ROOM, CHANGES_PER_MINUTE)
    mode = ["sessions"] if revision == SESSION_BASED else []
    return (
        replace(peers.MCPHOST, command=command),
        replace(peers.ON_POSTGRESQL, command=command),
        replace(peers.SDK, command=peers.script("sdk_asking_server.py", *mode)),
    )


def compare(
    plan: Plan, clients: int, names: Sequence[str]
) -> dict[str, tuple[SessionsFigure, ...]]:
    """Per revision, start the servers of those names and load them in turn. What cannot run is named."""
    return {revision: _compare(revision, plan, clients, names) for revision in MODES}


def _compare(
    revision: str, plan: Plan, clients: int, names: Sequence[str]
) -> tuple[SessionsFigure, ...]:
    peers_of_revision = [peer for peer in servers(revision) if peer.name in names]
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder, ExitStack() as stack:
        loads: dict[str, tuple[Served, Lines]] = {}
        for peer in peers_of_revision:
            try:
                load = _loaded(peer, Path(folder) / peer.name, revision, clients)
                loads[peer.name] = stack.enter_context(load)
            except UnavailableError as reason:
                print(f"{peer.label} is left out: {reason}", file=sys.stderr, flush=True)
        if plan.warm_up:
            for served, crowd in loads.values():
                _turn(served, crowd, plan.warm_up)
        turns: dict[str, list[Turn]] = {name: [] for name in loads}
        for number in range(plan.passes):
            for name, (served, crowd) in loads.items():
                turn = _turn(served, crowd, plan.seconds)
                turns[name].append(turn)
                print(
                    f"pass {number + 1}/{plan.passes}  {revision}  {name:<18} "
                    f"{turn.sessions / turn.seconds:>5,.0f}/s  "
                    f"{turn.cpu_per_session * 1e3:.2f} ms of CPU per session  errors {turn.errors}",
                    file=sys.stderr,
                    flush=True,
                )
    return summarise({peer.name: peer.label for peer in peers_of_revision}, turns)


@contextmanager
def _loaded(
    peer: Peer, folder: Path, revision: str, clients: int
) -> Iterator[tuple[Served, Lines]]:
    """A server, and its clients in a process of their own, which wait to be told for how long."""
    with serving(peer, folder) as served:
        url, token = served.target.url, served.target.token
        with program("bench.clients", url, revision, clients, BENCH_TOKEN=token) as crowd:
            crowd.next()
            yield served, crowd


def _turn(served: Served, crowd: Lines, seconds: int) -> Turn:
    before = cpu_seconds(served.pid)
    measured = json.loads(crowd.ask(str(seconds)))
    if measured["sessions"] < 2:
        raise LoadError(f"the clients of {served.target.url} had no sessions, but errors")
    return Turn(
        sessions=measured["sessions"],
        seconds=measured["seconds"],
        errors=measured["errors"],
        cpu=cpu_seconds(served.pid) - before,
        clients_cpu=measured["cpu"],
        steps=measured["steps"],
    )


def summarise(
    labels: Mapping[str, str], turns: Mapping[str, Sequence[Turn]]
) -> tuple[SessionsFigure, ...]:
    """A figure per server. Each has one turn per pass, in the same order."""
    return tuple(
        SessionsFigure(
            name=name,
            label=labels[name],
            cpu=median(turn.cpu_per_session for turn in own),
            low=min(turn.cpu_per_session for turn in own),
            high=max(turn.cpu_per_session for turn in own),
            ratio=_ratio(own, turns.get(peers.SDK.name)),
            rate=median(turn.sessions / turn.seconds for turn in own),
            clients_cpu=median(turn.clients_cpu / max(turn.sessions, 1) for turn in own),
            steps={step: _percentiles(own, step) for step in STEPS},
            errors=sum(turn.errors for turn in own),
        )
        for name, own in turns.items()
    )


def _ratio(own: Sequence[Turn], sdk: Sequence[Turn] | None) -> float | None:
    """Within a pass the machine was the same for both: the ratio outlives its drift."""
    if sdk is None:
        return None
    return median(a.cpu_per_session / b.cpu_per_session for a, b in zip(own, sdk, strict=True))


def _percentiles(turns: Sequence[Turn], step: str) -> Percentiles:
    every = quantiles([duration for turn in turns for duration in turn.steps[step]], n=100)
    return Percentiles(every[49], every[98])
