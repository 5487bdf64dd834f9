"""What the console and the API cost over a large record, many open live lists, and following the record."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from bench import addresses, passes, peers
from bench.addresses import TENANT, Samples
from bench.figures import Figure
from bench.listeners import Lines, make_room, program
from bench.load import Sample
from bench.passes import Plan
from bench.peers import MCPHOST, ON_POSTGRESQL, Peer, serving
from bench.proc import backends_cpu_seconds, cpu_seconds, memory_bytes
from bench.processes import ROOT, StartError, free_port, running
from tests.e2e.admin import Admin

RECORD, SMALL_RECORD = 10_000_000, 20_000
CROWD, SMALL_CROWD = 500, 20
LOOKS, FEW_LOOKS = 9, 1
IDLE_SECONDS = 10
FILL_SECONDS = 3 * 3600
SPARE = 200
PATIENCE = 30
ISSUE = ("token", "issue", "--staff", "--owner", "admin", "--name", "bench")
FOLLOWING, ALONE = "following", "alone"

_SAMPLE = """
import json
from mcphost.audit.models import CallSummary, Entry, QuestionSummary
from mcphost.tenants.models import Tenant
tenant = Tenant.objects.get(slug="{tenant}").id
rows = CallSummary.objects.filter(tenant=tenant).order_by("-last")
asked = rows.filter(asked__gt=0)[9]
traced = rows.exclude(trace_id=None)[9]
question = QuestionSummary.objects.filter(call=asked.call).first()
action = Entry.objects.filter(tenant=tenant, call=None).order_by("-id")[9]
known = {{
    "call": str(asked.call),
    "question": str(question.id),
    "entry": str(action.id),
    "trace": traced.trace_id,
    "entries": Entry.objects.count(),
}}
print(json.dumps(known))
"""


@dataclass(frozen=True, slots=True)
class PageFigure:
    """One page, or one read of the API: seconds of each look until all of it had come, the first one apart, and
    what each of the others cost the processes of the server and its database in seconds of the CPU."""

    name: str
    path: str
    first: float
    looks: Sequence[float]
    cpu: float
    size: int


@dataclass(frozen=True, slots=True)
class LoopFigure:
    """The longest that the event loop took for a response of its own: while nothing is read, beside pages of the
    console, and beside reads of the API. Seconds."""

    idle: float
    pages: float
    reads: float


@dataclass(frozen=True, slots=True)
class RecordFigure:
    """The pages of the console, and what the API reads, over one database of so many entries; the load average
    of the machine at the end."""

    label: str
    entries: int
    pages: Sequence[PageFigure]
    reads: Sequence[PageFigure]
    loop: LoopFigure
    load: float


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
    settings = {**env, "MCPHOST_API_REQUESTS_PER_MINUTE": "100000"}
    peer = replace(
        MCPHOST, command=lambda folder, port: peers.mcphost_command(folder, port, **settings)
    )
    home = folder / "home"
    with serving(peer, folder) as served:
        port = int(served.target.url.split(":")[2].partition("/")[0])
        entries, samples = _samples(home, env)
        database = urlsplit(env.get("DATABASE_URL", "")).path.removeprefix("/")

        def spent() -> float:
            of_database = backends_cpu_seconds(database) if database else 0
            return cpu_seconds(served.pid) + of_database

        token = _manage(*ISSUE, home=home, **env).strip()
        admin = Admin(port, (home / "admin-password").read_text().strip())
        with program("bench.pulse", port) as pulse:
            time.sleep(IDLE_SECONDS if looks > FEW_LOOKS else 1)
            idle = _longest(pulse)
            seen = _look(spent, admin.get, addresses.pages(samples), looks)
            beside_pages = _longest(pulse)
            read = _look(spent, _api(port, token), addresses.reads(samples), looks)
            loop = LoopFigure(idle, beside_pages, _longest(pulse))
    return RecordFigure(label, entries, seen, read, loop, os.getloadavg()[0])


def _samples(home: Path, env: Mapping[str, str]) -> tuple[int, Samples]:
    """How many entries there are, and ids of some."""
    output = _manage("shell", "-c", _SAMPLE.format(tenant=TENANT), home=home, **env)
    # Before it, the shell says what it imported.
    known = json.loads(output.splitlines()[-1])
    return known.pop("entries"), Samples(**known)


def _look(
    spent: Callable[[], float], get: Callable[[str], str], paths: Mapping[str, str], looks: int
) -> list[PageFigure]:
    return [_see(spent, get, name, path, looks) for name, path in paths.items()]


def _see(
    spent: Callable[[], float], get: Callable[[str], str], name: str, path: str, looks: int
) -> PageFigure:
    first, size = _time(get, path)
    before = spent()
    times = [_time(get, path)[0] for _ in range(looks)]
    cpu = (spent() - before) / looks
    print(f"{name:40} {median(times) * 1000:7.0f} ms {cpu * 1000:7.0f} ms CPU", flush=True)
    return PageFigure(name, path, first, times, cpu, size)


def _time(get: Callable[[str], str], path: str) -> tuple[float, int]:
    begun = time.perf_counter()
    size = len(get(path))
    return time.perf_counter() - begun, size


def _api(port: int, token: str) -> Callable[[str], str]:
    """Read from the API, as a program does: over a connection that it keeps."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def read(path: str) -> str:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        body = response.read().decode()
        assert response.status == 200, f"GET {path}: {response.status} {body[:300]}"
        return body

    return read


def _longest(pulse: Lines) -> float:
    """The longest that the event loop took for a response since it was last asked."""
    return float(json.loads(pulse.ask())["longest"])


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
