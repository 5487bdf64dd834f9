"""The status of the platform in a few lines: each is good, or has a reason that says what to do.

It is read from the rows that the processes write with their heartbeats (`facts`), and a few short queries.
So every process can answer for all, and reading costs the same however much they do.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import Error, connection, transaction
from django.utils import timezone

from mcphost.audit import verification
from mcphost.audit.verification import PASS_EVERY, VerificationState
from mcphost.catalogue.selectors import published_functions
from mcphost.feed import nodes
from mcphost.feed.loop import SILENT_SECONDS
from mcphost.feed.nodes import ALIVE, BEAT_SECONDS, NodeRow
from mcphost.serving.options import options
from mcphost.serving.process.facts import WORKER
from mcphost.tasks.listing import WorkingTasks, count_working
from mcphost.vault.selectors import active_key

STATEMENT_SECONDS: Final = 2
"""How long each of the queries may take."""
SLOW_SECONDS: Final = 0.5
LAG_SECONDS: Final = 0.2
"""The event loop is late from here on where MCPHOST_SHED_LAG_SECONDS is 0."""
KEY_READ: Final = ALIVE
"""After how long every process must have read a rotation, and have reported that it has."""
VERIFIED_LATE: Final = PASS_EVERY + timedelta(minutes=15)
"""After how long without a read portion the line of verification says so."""
FULL: Final = 0.9
_NAMED: Final = 5
_OWN_LINES: Final = frozenset({"records", "feed", "database", "redis", "drain"})
"""Health probes that other lines show, or that are no problem."""


@dataclass(frozen=True, slots=True)
class StatusLine:
    """One line. `reason` is empty if all is well."""

    name: str
    title: str
    text: str
    reason: str = ""

    @property
    def good(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What reading took, in seconds, and PostgreSQL's connections: in use, and at most (0: unknown)."""

    seconds: float = 0.0
    in_use: int = 0
    max_connections: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """What was read. `tasks` is None if it could not be read, `key` and `verified` also if there is none.
    `published` are the functions that tenants have published; `settled`: whether this process must know by
    now what others declare."""

    now: datetime
    processes: Sequence[NodeRow]
    database: DatabaseFacts
    key: tuple[str, datetime] | None = None
    tasks: WorkingTasks | None = None
    verified: VerificationState | None = None
    published: frozenset[str] = frozenset()
    settled: bool = True

    @property
    def alive(self) -> list[NodeRow]:
        return [process for process in self.processes if process.alive]


@dataclass(frozen=True, slots=True)
class Rule:
    """A limit of one fact, and the reason that names the processes above it: in `advice`, for `{}`, each
    with its value as `shown` writes it. Without a limit, the fact is a text, and empty if all is well."""

    path: tuple[str, ...]
    limit: float | Callable[[NodeRow], float] | None
    advice: str
    shown: Callable[[Any], str] = str

    def reason(self, processes: Iterable[NodeRow]) -> str:
        above = [process for process in processes if self._is_above(process)]
        names = _names(above, lambda process: self.shown(fact(process, *self.path)))
        return self.advice.format(names) if above else ""

    def _is_above(self, process: NodeRow) -> bool:
        if self.limit is None:
            return bool(fact(process, *self.path))
        limit = self.limit(process) if callable(self.limit) else self.limit
        return number(process, *self.path) > limit


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    """The lines, and the processes that they are about."""

    facts: PlatformFacts
    lines: Sequence[StatusLine]

    @property
    def good(self) -> bool:
        return all(line.good for line in self.lines)

    def as_json(self) -> dict[str, Any]:
        """Return the status for monitoring. Names and texts may contain anything."""
        return {
            "status": "ok" if self.good else "problem",
            "at": self.facts.now.isoformat(),
            "lines": [
                {
                    "name": line.name,
                    "status": "ok" if line.good else "problem",
                    "text": line.text,
                    "reason": line.reason,
                }
                for line in self.lines
            ],
            "processes": [
                {
                    "name": process.name,
                    "state": state_of(process),
                    "started_at": process.started_at.isoformat(),
                    "heartbeat_seconds": round(process.age.total_seconds(), 1),
                    "facts": dict(process.facts),
                }
                for process in self.facts.processes
            ],
        }


LineRow = tuple[str, Callable[[PlatformFacts], Iterable[str]], *tuple[Rule, ...]]
"""A line's title, what reads its text and the reasons that no `Rule` covers, and its rules."""


def read(clock: Callable[[], float] = time.monotonic) -> PlatformStatus:
    """Read the status, within a few seconds also from a slow database. In a database thread.

    Raises the database's error only if the database is unreachable.
    """
    own = nodes.own(timezone.now())
    began = clock()
    try:
        with _snapshot():
            in_use, max_connections = _bounded()
            processes = (own,) if settings.MCPHOST_ALONE else nodes.rows()
            key, tasks = active_key(), count_working()
            verified = verification.state()
            published = published_functions()
    except Error as error:
        if not connection.is_usable():
            raise
        why = f"A query of this page failed or took more than {STATEMENT_SECONDS} s ({type(error).__name__})."
        return _status(PlatformFacts(own.seen_at, (own,), DatabaseFacts(problem=why)))
    took = DatabaseFacts(clock() - began, in_use, max_connections)
    now = timezone.now()
    settled = _is_settled(own, now)
    return _status(PlatformFacts(now, processes, took, key, tasks, verified, published, settled))


def living() -> tuple[NodeRow, ...]:
    """The living processes, with what they report. In a database thread."""
    own = nodes.own(timezone.now())
    return (
        (own,)
        if settings.MCPHOST_ALONE
        else tuple(process for process in nodes.rows() if process.alive)
    )


def without_database(why: str) -> PlatformStatus:
    """The status as far as this process knows it in memory."""
    own = nodes.own(timezone.now())
    return _status(PlatformFacts(own.seen_at, (own,), DatabaseFacts(problem=why)))


def state_of(process: NodeRow) -> str:
    """Return what a process does: serves, drains, works (a worker), or that it is gone."""
    if not process.alive:
        return "gone"
    if fact(process, "role") == WORKER:
        return "works"
    return "drains" if process.draining else "serves"


def _snapshot() -> AbstractContextManager[object]:
    """A transaction, to which PostgreSQL's time limit belongs. On SQLite it would wait for the write lock."""
    return transaction.atomic() if connection.vendor == "postgresql" else nullcontext()


def _bounded() -> tuple[int, int]:
    """Limit the queries of this transaction; return PostgreSQL's connections, in use and at most."""
    if connection.vendor != "postgresql":
        return 0, 0
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
        cursor.execute(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
            "current_setting('max_connections')::int"
        )
        in_use, max_connections = cursor.fetchone()
    return in_use, max_connections


def _status(facts: PlatformFacts) -> PlatformStatus:
    return PlatformStatus(facts, tuple(_line(name, row, facts) for name, row in _LINES.items()))


def _line(name: str, row: LineRow, facts: PlatformFacts) -> StatusLine:
    title, read_line, *rules = row
    text, *further_reasons = read_line(facts)
    reasons = [reason for rule in rules if (reason := rule.reason(facts.alive))]
    return StatusLine(name, title, text, " ".join([*reasons, *further_reasons]))


def _processes(facts: PlatformFacts) -> Iterator[str]:
    states = Counter(map(state_of, facts.processes))
    yield ", ".join(f"{count} {STATES[state]}" for state, count in states.items()) or "none"
    silent = [process for process in facts.processes if not process.alive]
    if silent:
        yield (
            f"No heartbeat from {_names(silent, _age)}: killed, or without the database. Look at the log "
            "there, and start it again if its supervisor did not. It is listed for an hour."
        )
    if not states["serves"]:
        yield "No process takes calls: start one with `manage.py serve`."
    late = [process for process in facts.alive if process.age.total_seconds() > 2 * BEAT_SECONDS]
    if late:
        yield f"The heartbeat is late: {_names(late, _age)}. The database may be slow."
    for process in facts.alive:
        problems = fact(process, "problems")
        for probe, problem in problems.items() if isinstance(problems, Mapping) else ():
            if probe not in _OWN_LINES:
                yield f"{process.name}: {probe}: {problem}."


def _count(processes: int) -> str:
    return f"{processes} process{'' if processes == 1 else 'es'}"


def _versions(facts: PlatformFacts) -> Iterator[str]:
    versions = Counter(map(_version, facts.alive))
    rows = (f"{version} on {_count(count)}" for version, count in sorted(versions.items()))
    yield ", ".join(rows) or "unknown"
    if len(versions) > 1:
        newest = fact(max(facts.alive, key=lambda process: process.started_at), "version")
        outdated = [process for process in facts.alive if fact(process, "version") != newest]
        yield (
            f"Different versions run. These have another version than the newest process: "
            f"{_names(outdated, _version)}. During an upgrade that is expected; afterwards restart them."
        )


def _code(facts: PlatformFacts) -> Iterator[str]:
    """Compare the functions of all processes, and what tenants have published of them."""
    newest_last = sorted(facts.alive, key=lambda process: process.started_at)
    loaded = [
        (process.name, process.functions)
        for process in newest_last
        if process.functions is not None
    ]
    every: dict[str, str] = {}
    for _, functions in loaded:
        every |= functions
    yield f"{len(every)} loaded"
    lacking = _lists((name, sorted(every.keys() - functions.keys())) for name, functions in loaded)
    if lacking:
        yield (
            f"Functions are missing: {lacking}. Other processes run their calls meanwhile. Give "
            "these processes the same folders of tools, and restart them; `manage.py check` names files "
            "that cannot be imported."
        )
    differing = _lists(
        (
            name,
            sorted(
                function for function, declared in functions.items() if declared != every[function]
            ),
        )
        for name, functions in loaded
    )
    if differing:
        yield (
            f"Functions differ from those of the newest process: {differing}. Restart these "
            "processes with the same code."
        )
    silent = [
        process
        for process in newest_last
        if process.functions is None and facts.settled and _is_settled(process, facts.now)
    ]
    if silent and len(facts.alive) > 1:
        yield (
            f"These do not say which functions they have, because their version is older: {_names(silent)}. "
            "Restart them with the new version."
        )
    absent = sorted(facts.published - every.keys()) if len(loaded) == len(newest_last) else []
    if absent:
        yield (
            f"Published, but no process has the code: {_shortened(absent)}. Deploy it, or disable what "
            "uses it."
        )


def _is_settled(process: NodeRow, now: datetime) -> bool:
    """Whether a process has had time to declare its functions, and to read those of others."""
    return (now - process.started_at).total_seconds() > 2 * BEAT_SECONDS


def _lists(by_process: Iterable[tuple[str, Sequence[str]]]) -> str:
    concerned = [f"{name} ({_shortened(names)})" for name, names in by_process if names]
    return _shortened(concerned, _NAMED)


def _shortened(texts: Sequence[str], max_shown: int = 3) -> str:
    hidden = len(texts) - max_shown
    return ", ".join(texts[:max_shown]) + (f" and {hidden} more" if hidden > 0 else "")


def _keys(facts: PlatformFacts) -> Iterator[str]:
    if facts.database.problem:
        yield "unknown, because the database could not be read"
    elif facts.key is None:
        yield "no active key"
        yield "Create the first key with `manage.py init`."
    else:
        active, since = facts.key
        sealing = [process for process in facts.alive if fact(process, "key")]
        outdated = [process for process in sealing if fact(process, "key") != active]
        readers = len(sealing) - len(outdated)
        text = f"{active} is active, and read by {readers} of {_count(len(facts.alive))}"
        if len(sealing) < len(facts.alive):
            text += "; the others read it when they first need it"
        yield text
        if outdated and facts.now - since > KEY_READ:
            yield (
                f"These still seal with another key: {_names(outdated)}. They do not read the change log: "
                "restart them."
            )


def _writer(facts: PlatformFacts) -> Iterator[str]:
    text = "no records waiting"
    if waiting := _sum(facts, "writer", "waiting"):
        lag = _seconds(_maximum(facts, "writer", "lag"))
        text = f"{waiting:.0f} submissions wait, the oldest for {lag}"
    behind = _maximum(facts, "summaries", "lag")
    yield text + (
        f"; lists and figures of calls are {_seconds(behind)} behind" if behind >= 1 else ""
    )
    if not settings.MCPHOST_SUMMARIES_IN_SERVER and not any(
        fact(process, "role") == WORKER for process in facts.alive
    ):
        yield (
            "No process keeps the lists and figures of calls up to date: start `manage.py worker`, or set "
            "`MCPHOST_SUMMARIES_IN_SERVER`."
        )


def _verification(facts: PlatformFacts) -> Iterator[str]:
    state = facts.verified
    if state is None:
        yield "not run yet"
        return
    parts = []
    if state.ended_at is not None:
        ago = _whole(facts.now - state.ended_at)
        parts.append(f"the last one ended {ago} ago and read {state.payloads:,} payloads")
    if state.payloads_now or not parts:
        parts.append(f"the present one has read {state.payloads_now:,} payloads")
    if state.reached is not None:
        parts.append(f"reached entries that are {_whole(facts.now - state.reached)} old")
    yield "; ".join(parts)
    if state.wrong:
        yield (
            f"{state.wrong:,} payloads are not what was recorded; the first belongs to the entry "
            f"{state.first_wrong}. They, or the keys of their tenant, were changed in the database: see who "
            "has access to it, and compare with a backup."
        )
    elif facts.now - state.read_at > VERIFIED_LATE:
        yield (
            f"No payload has been verified for {_whole(facts.now - state.read_at)}. The processes' logs say "
            "why their periodic work fails."
        )


def _database(facts: PlatformFacts) -> Iterator[str]:
    row = facts.database
    if row.problem:
        yield connection.vendor
        yield f"{row.problem} See whether the database runs, what locks it, and how busy its disk is."
    else:
        text = f"{connection.vendor}, this page's queries took {_seconds(row.seconds)}"
        yield text + (
            f", {row.in_use} of {row.max_connections} connections in use"
            if row.max_connections
            else ""
        )
    if row.seconds > SLOW_SECONDS:
        yield "The database is slow: look at its load, its disk, and long transactions."
    if row.max_connections and row.in_use >= FULL * row.max_connections:
        yield "Few connections are left: raise `max_connections`, or run fewer processes."


def _redis(facts: PlatformFacts) -> Iterator[str]:
    if not settings.MCPHOST_REDIS:
        yield f"not used: processes read the change log every {_seconds(settings.MCPHOST_FEED_SECONDS)}"
        return
    without = [process for process in facts.alive if fact(process, "warnings", "redis")]
    yield "no wake-ups" if without else "wake-ups arrive"
    if without:
        yield (
            f"Redis is unreachable from {_names(without)}: changes arrive with a delay, and nothing is lost. "
            "Start Redis, or correct `REDIS_URL`."
        )


def _workers(facts: PlatformFacts) -> Iterator[str]:
    due = 0 if facts.tasks is None else facts.tasks.due
    text = f"tasks: {_sum(facts, 'tasks', 'running'):.0f} running, {due} due"
    if not options().tasks.queued:
        yield f"{text}; they run in the serving process"
        return
    takers = [process for process in facts.alive if fact(process, "tasks", "takes")]
    yield f"{text}; {_count(len(takers))} take{'s' if len(takers) == 1 else ''} them"
    if not takers and not facts.database.problem:
        yield "No process takes tasks: start `manage.py worker`, or set `MCPHOST_TASK_WORKER_IN_SERVER`."


STATES: Final = {
    "serves": "serving",
    "drains": "draining",
    "works": "running tasks only",
    "gone": "gone",
}
"""What a process does, in words."""


def fact(process: NodeRow, *path: str) -> Any:
    """Return what a process reported, by its path; None if it did not, or in another form."""
    value: Any = process.facts
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def number(process: NodeRow, *path: str) -> float:
    """Return a fact that is a number; 0 if it is not reported, or none."""
    value = fact(process, *path)
    return value if isinstance(value, int | float) else 0.0


def _maximum(facts: PlatformFacts, *path: str) -> float:
    return max((number(process, *path) for process in facts.alive), default=0.0)


def _sum(facts: PlatformFacts, *path: str) -> float:
    return sum(number(process, *path) for process in facts.alive)


def _names(
    processes: Iterable[NodeRow], more: Callable[[NodeRow], str] = lambda process: ""
) -> str:
    names = [
        f"{process.name}{f' ({detail})' if (detail := more(process)) else ''}"
        for process in processes
    ]
    return _shortened(names, _NAMED)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _age(process: NodeRow) -> str:
    return f"for {_whole(process.age)}"


def _whole(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"


def _version(process: NodeRow) -> str:
    return str(fact(process, "version") or "older")


def _lag_limit(process: NodeRow) -> float:
    return number(process, "loop", "limit") or LAG_SECONDS


def _waiting_limit(process: NodeRow) -> float:
    """Return how many jobs may wait for a sandboxed worker: fewer than there are workers."""
    return (number(process, "sandbox", "most") or math.inf) - 1


def _counted(value: Any) -> str:
    return f"{value:.0f}"


_LINES: Final[Mapping[str, LineRow]] = {
    "processes": ("Processes", _processes),
    "versions": ("Versions", _versions),
    "code": ("Functions", _code),
    "keys": ("Keys", _keys),
    "writer": (
        "Record writer",
        _writer,
        Rule(
            ("writer", "problem"),
            None,
            "Records are not written in time: {}. Calls wait, and are refused once the queue is full. "
            "See whether the database is reachable, fast, and not full.",
        ),
    ),
    "verification": ("Verification", _verification),
    "event_loop": (
        "Event loops",
        lambda facts: [f"longest delay: {_seconds(_maximum(facts, 'loop', 'lag'))}"],
        Rule(
            ("loop", "lag"),
            _lag_limit,
            "The event loop is late: {}. A tool blocks it, or there are too many calls: the log names "
            "the tool; otherwise start another process.",
            _seconds,
        ),
    ),
    "change_log": (
        "Change log",
        lambda facts: [
            f"longest time between reads: {_seconds(_maximum(facts, 'change_log', 'pause'))}"
        ],
        Rule(
            ("change_log", "pause"),
            SILENT_SECONDS,
            "Changes were read late: {}. Until then such a process serves what it knew. See whether the "
            "database is slow, or the machine overloaded.",
            _seconds,
        ),
    ),
    "database": ("Database", _database),
    "pool": (
        "Threads",
        lambda facts: [
            f"rounds in progress: {_sum(facts, 'rounds'):.0f}, busy threads of tools: {_sum(facts, 'threads', 'busy'):.0f}"
        ],
        Rule(("database", "waiting"), 0, "Requests wait for the database: {}.", _counted),
        Rule(
            ("threads", "lost"),
            0,
            "Functions did not return within their time limit: {}. Their threads are freed only by a "
            "restart; the log names the functions.",
            _counted,
        ),
    ),
    "redis": ("Redis", _redis),
    "workers": ("Workers", _workers),
    "sandbox": (
        "Sandbox",
        lambda facts: [
            f"{_sum(facts, 'sandbox', 'in_use'):.0f} of {_sum(facts, 'sandbox', 'most'):.0f} sandboxed workers in use, {_sum(facts, 'sandbox', 'waiting'):.0f} jobs waiting"
        ],
        Rule(
            ("sandbox", "waiting"),
            _waiting_limit,
            "As many scripts wait as may run: {}. Start another process, or see with which script the "
            "workers are busy.",
            lambda value: "",
        ),
    ),
}
