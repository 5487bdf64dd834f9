"""What the console costs: its pages over a large record, many open live lists, and following the record."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from bench import passes, peers
from bench.figures import Figure
from bench.listeners import make_room, program
from bench.load import Sample
from bench.passes import Plan
from bench.peers import MCPHOST, ON_POSTGRESQL, Peer, serving
from bench.proc import cpu_seconds, memory_bytes
from bench.processes import ROOT, StartError, free_port, running
from tests.e2e.admin import Admin

RECORD, SMALL_RECORD = 10_000_000, 20_000
CROWD, SMALL_CROWD = 500, 20
LOOKS, FEW_LOOKS = 9, 1
IDLE_SECONDS = 10
FILL_SECONDS = 3 * 3600
SPARE = 200
TENANT = "crowd-3"
FOLLOWING, ALONE = "following", "alone"

_SAMPLE = """
import json
from mcphost.audit.models import CallSummary, Entry
from mcphost.tenants.models import Tenant
tenant = Tenant.objects.get(slug="{tenant}").id
rows = CallSummary.objects.filter(tenant=tenant).order_by("-last")
asked = rows.filter(asked__gt=0)[9]
traced = rows.exclude(trace_id=None)[9]
known = {{"call": str(asked.call), "trace": traced.trace_id, "entries": Entry.objects.count()}}
print(json.dumps(known))
"""


@dataclass(frozen=True, slots=True)
class PageFigure:
    """One page: seconds of each look until all of it had come, the first one apart."""

    name: str
    path: str
    first: float
    looks: Sequence[float]
    size: int


@dataclass(frozen=True, slots=True)
class RecordFigure:
    """The pages over one database of so many entries."""

    label: str
    entries: int
    pages: Sequence[PageFigure]


@dataclass(frozen=True, slots=True)
class SocketsFigure:
    """A server without and with open live lists. `idle` is the share of a core while nothing is called, `memory` the
    bytes of each list, `samples` calls under load, each without and with, in turn."""

    count: int
    idle: tuple[float, float]
    memory: float
    samples: Sequence[tuple[Sample, Sample]]
    rows: int


def record(
    entries: int, looks: int, filled: Sequence[str], databases: Sequence[Peer]
) -> Iterator[RecordFigure]:
    """Look at pages over a record, on each of these databases.

    `filled` are records that are there already: folders of data, and URLs of databases.
    """
    if filled:
        for source in filled:
            yield _over(source, looks)
        return
    for peer in databases:
        with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as name, peer.backing() as env:
            with running(peers.mcphost_command(Path(name), free_port(), **env)):
                pass  # the first start makes the database
            _run_module("bench.record", str(entries), home=Path(name) / "home", **env)
            yield _time_pages(peer.label, Path(name), looks, env)


def _over(source: str, looks: int) -> RecordFigure:
    """`source`: a folder whose `home` has the data, or such a folder, `=` and the URL of a database."""
    folder, _, url = source.partition("=")
    env = {"DATABASE_URL": url} if url else {}
    label = (ON_POSTGRESQL if url else MCPHOST).label
    return _time_pages(label, Path(folder), looks, env)


def _time_pages(label: str, folder: Path, looks: int, env: Mapping[str, str]) -> RecordFigure:
    peer = replace(MCPHOST, command=lambda folder, port: peers.mcphost_command(folder, port, **env))
    with serving(peer, folder) as served:
        port = int(served.target.url.split(":")[2].partition("/")[0])
        admin = Admin(port, (folder / "home" / "admin-password").read_text().strip())
        sample = _SAMPLE.format(tenant=TENANT)
        output = _manage("shell", "-c", sample, home=folder / "home", **env)
        # Before it, the shell says what it imported.
        sample_ids = json.loads(output.splitlines()[-1])
        figures = [_see(admin, name, path, looks) for name, path in _pages(sample_ids).items()]
    return RecordFigure(label, sample_ids["entries"], figures)


def _pages(sample_ids: Mapping[str, Any]) -> Mapping[str, str]:
    calls = f"/admin/t/{TENANT}/calls/"
    day = (datetime.now(UTC) - timedelta(days=11)).date()
    filters = {
        "a tool": "tool=tool-7",
        "a client": "client=cursor",
        "a caller": "principal=caller-17",
        "an outcome": "outcome=tool_error",
        "open": "outcome=open",
        "input requests": "questions=asked",
        "declined": "questions=decline",
        "words of errors": "words=quota&period=30d",
        "a day": f"since={day}&until={day}",
        "a trace": f"trace={sample_ids['trace']}",
        "a call's id": f"call={sample_ids['call'][:8]}",
        "a tool and a caller": "tool=tool-1&principal=caller-5&outcome=tool_error",
        "no match": "tool=tool-1&client=curl&words=unheard",
    }
    questions = f"/admin/t/{TENANT}/input-requests/"
    of_questions = {
        "a tool": "tool=tool-7",
        "a person": "principal=caller-17",
        "a client": "client=cursor",
        "open": "state=open",
        "overdue": "state=overdue",
        "declined": "state=declined",
        "a tool and a state": "tool=tool-7&state=answered",
    }
    return {
        **{
            f"dashboard, {period}": f"/admin/?period={period}"
            for period in ("1h", "24h", "7d", "30d")
        },
        **{
            f"a tenant, {period}": f"/admin/t/{TENANT}/?period={period}" for period in ("1h", "30d")
        },
        "all calls": "/admin/calls/",
        "calls": calls,
        "calls, 7 days": f"{calls}?period=7d",
        **{f"calls by {name}": f"{calls}?{query}" for name, query in filters.items()},
        "all calls by a client": "/admin/calls/?client=cursor",
        "all calls by words of errors": "/admin/calls/?words=quota",
        "a call": f"{calls}{sample_ids['call']}/",
        "all questions": "/admin/input-requests/",
        "questions": questions,
        **{f"questions by {name}": f"{questions}?{query}" for name, query in of_questions.items()},
        "all questions by a tool": "/admin/input-requests/?tool=tool-7",
        "what became of them": "/admin/input-requests/funnel/?period=30d",
        "refusals": "/admin/refusals/",
        "audit log": "/admin/audit-log/",
        "refusals of a tenant": f"/admin/t/{TENANT}/refusals/",
        "audit log of a tenant": f"/admin/t/{TENANT}/audit-log/",
        "tools": f"/admin/t/{TENANT}/tools/",
        "keys": "/admin/keys/",
        "status": "/admin/status/",
    }


def _see(admin: Admin, name: str, path: str, looks: int) -> PageFigure:
    times, size = [], 0
    for _ in range(looks + 1):
        begun = time.perf_counter()
        size = len(admin.get(path))
        times.append(time.perf_counter() - begun)
    print(f"{name:32} {median(times[1:]) * 1000:7.0f} ms", flush=True)
    return PageFigure(name, path, times[0], times[1:], size)


def sockets(count: int, plan: Plan) -> SocketsFigure:
    """Open `count` live lists of one user, and load the server without and with them in turn."""
    make_room(count + SPARE)
    room = {
        "MCPHOST_CONSOLE_SOCKETS": str(count),
        "MCPHOST_CONSOLE_SOCKETS_PER_USER": str(count),
    }
    peer = replace(
        MCPHOST, command=lambda folder, port: peers.mcphost_command(folder, port, **room)
    )
    with (
        tempfile.TemporaryDirectory(prefix="mcphost-bench-") as name,
        serving(peer, Path(name)) as served,
    ):
        port = int(served.target.url.split(":")[2].partition("/")[0])
        admin = Admin(port, (Path(name) / "home" / "admin-password").read_text().strip())
        if plan.warm_up:
            served.measure(plan.warm_up)
        idle, memory = [_idle(served.pid, plan)], memory_bytes(served.pid)
        pairs, rows = [], 0
        for number in range(plan.passes):
            without = served.measure(plan.seconds)
            with _watching(port, count, admin.cookie) as watched:
                if not number:
                    memory = memory_bytes(served.pid) - memory
                    idle.append(_idle(served.pid, plan))
                pairs.append((without, served.measure(plan.seconds)))
                rows += watched()
    return SocketsFigure(count, (idle[0], idle[1]), memory / count, pairs, rows)


@contextmanager
def _watching(port: int, count: int, cookie: str) -> Iterator[Callable[[], int]]:
    with program("bench.watchers", port, count, BENCH_COOKIE=cookie) as watchers:
        json.loads(watchers.next())
        yield lambda: int(json.loads(watchers.ask())["rows"])


def _idle(pid: int, plan: Plan) -> float:
    """The share of a core that a process uses while nothing is asked of it."""
    seconds = IDLE_SECONDS if plan.warm_up else 1
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / seconds


def following(
    plan: Plan, connections: Sequence[int], databases: Sequence[Peer]
) -> dict[str, dict[int, tuple[Figure, ...]]]:
    """Load a server that follows the record and one that does not, in turn: figures per database."""
    figures = {}
    for peer in databases:
        alone = _named(peer, ALONE, "without", MCPHOST_SUMMARIES_IN_SERVER="0")
        both = (_named(peer, FOLLOWING, "with the summaries"), alone)
        figures[peer.label] = passes.compare_each(both, plan, connections)
    return figures


def _named(peer: Peer, name: str, label: str, **settings: str) -> Peer:
    return replace(
        peer,
        name=name,
        label=label,
        command=lambda folder, port: peers.mcphost_command(folder, port, **settings),
    )


def _manage(*arguments: str, home: Path, **env: str) -> str:
    return _run_module("manage", *arguments, home=home, **env)


def _run_module(module: str, *arguments: str, home: Path, **env: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "MCPHOST_HOME": str(home),
            "DJANGO_SETTINGS_MODULE": "mcphost.settings",
            **env,
        },
        capture_output=True,
        text=True,
        timeout=FILL_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        raise StartError(f"{module} failed:\n{finished.stderr.strip()}")
    return finished.stdout
