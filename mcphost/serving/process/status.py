"""The state of the platform in a few lines: each is good, or has a reason that says what to do.

It is read from the rows that the processes write with their heartbeats (`facts`), and a few short queries.
So every process can answer for all, and reading costs the same however much they do.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    most: int = 0
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
        return [each for each in self.processes if each.alive]


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
                    "name": each.name,
                    "state": state_of(each),
                    "started_at": each.started_at.isoformat(),
                    "heartbeat_seconds": round(each.age.total_seconds(), 1),
                    "facts": dict(each.facts),
                }
                for each in self.facts.processes
            ],
        }


def read(clock: Callable[[], float] = time.monotonic) -> PlatformStatus:
    """Read the status, within a few seconds also from a slow database. In a database thread.

    Raises the database's error only if the database is unreachable.
    """
    own = nodes.own(timezone.now())
    began = clock()
    try:
        with _snapshot():
            in_use, most = _bounded()
            processes = (own,) if settings.MCPHOST_ALONE else nodes.rows()
            key, tasks = active_key(), count_working()
            verified = verification.state()
            published = published_functions()
    except Error as error:
        if not connection.is_usable():
            raise
        why = f"A query of this page failed or took more than {STATEMENT_SECONDS} s ({type(error).__name__})."
        return _status(PlatformFacts(own.seen_at, (own,), DatabaseFacts(problem=why)))
    took = DatabaseFacts(clock() - began, in_use, most)
    now = timezone.now()
    settled = _is_settled(own, now)
    return _status(PlatformFacts(now, processes, took, key, tasks, verified, published, settled))


def living() -> tuple[NodeRow, ...]:
    """The living processes, with what they report. In a database thread."""
    own = nodes.own(timezone.now())
    return (own,) if settings.MCPHOST_ALONE else tuple(each for each in nodes.rows() if each.alive)


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
        in_use, most = cursor.fetchone()
    return in_use, most


def _status(facts: PlatformFacts) -> PlatformStatus:
    return PlatformStatus(facts, tuple(line(facts) for line in _LINES))


def _processes(facts: PlatformFacts) -> StatusLine:
    states = Counter(map(state_of, facts.processes))
    text = ", ".join(f"{count} {_STATES[state]}" for state, count in states.items())
    reasons = []
    gone = [each for each in facts.processes if not each.alive]
    if gone:
        reasons.append(
            f"No heartbeat from {_names(gone, _age)}: killed, or without the database. Look at the log "
            "there, and start it again if its supervisor did not. It is listed for an hour."
        )
    if not states["serves"]:
        reasons.append("No process takes calls: start one with `manage.py serve`.")
    late = [each for each in facts.alive if each.age.total_seconds() > 2 * BEAT_SECONDS]
    if late:
        reasons.append(f"The heartbeat is late: {_names(late, _age)}. The database may be slow.")
    for each in facts.alive:
        for probe, problem in _problems(each).items():
            reasons.append(f"{each.name}: {probe}: {problem}.")
    return StatusLine("processes", "Processes", text or "none", " ".join(reasons))


def _versions(facts: PlatformFacts) -> StatusLine:
    found = Counter(map(_version, facts.alive))
    text = ", ".join(f"{version} ({count})" for version, count in sorted(found.items()))
    reason = ""
    if len(found) > 1:
        newest = fact(max(facts.alive, key=lambda each: each.started_at), "version")
        others = [each for each in facts.alive if fact(each, "version") != newest]
        reason = (
            f"Different versions run. These have another version than the newest process: "
            f"{_names(others, _version)}. During an upgrade that is expected; afterwards restart them."
        )
    return StatusLine("versions", "Versions", text or "unknown", reason)


def _code(facts: PlatformFacts) -> StatusLine:
    """Whether all processes have the functions that tenants have published, with the same code."""
    newest_last = sorted(facts.alive, key=lambda each: each.started_at)
    loaded = [(each.name, each.functions) for each in newest_last if each.functions is not None]
    every: dict[str, str] = {}
    for _, functions in loaded:
        every |= functions
    lacking = [(name, sorted(every.keys() - functions.keys())) for name, functions in loaded]
    differing = [
        (name, sorted(one for one, declared in functions.items() if declared != every[one]))
        for name, functions in loaded
    ]
    silent = [each for each in newest_last if each.functions is None and facts.settled]
    silent = [each for each in silent if _is_settled(each, facts.now)]
    reasons = []
    if any(names for _, names in lacking):
        reasons.append(
            f"Functions are missing: {_lists(lacking)}. Other processes run their calls meanwhile. Give "
            "these processes the same folders of tools, and restart them; `manage.py check` names files "
            "that cannot be imported."
        )
    if any(names for _, names in differing):
        reasons.append(
            f"Functions differ from those of the newest process: {_lists(differing)}. Restart these "
            "processes with the same code."
        )
    if silent and len(facts.alive) > 1:
        reasons.append(
            f"These do not say which functions they have, because their version is older: {_names(silent)}. "
            "Restart them with the new version."
        )
    absent = sorted(facts.published - every.keys()) if len(loaded) == len(newest_last) else []
    if absent:
        reasons.append(
            f"Published, but no process has the code: {_shortened(absent)}. Deploy it, or disable what "
            "uses it."
        )
    return StatusLine("code", "Functions", f"{len(every)} loaded", " ".join(reasons))


def _is_settled(process: NodeRow, now: datetime) -> bool:
    """Whether a process has had time to declare its functions, and to read those of others."""
    return (now - process.started_at).total_seconds() > 2 * BEAT_SECONDS


def _lists(by_process: Iterable[tuple[str, Sequence[str]]]) -> str:
    concerned = [f"{name} ({_shortened(names)})" for name, names in by_process if names]
    return _shortened(concerned, _NAMED)


def _shortened(texts: Sequence[str], most: int = 3) -> str:
    left = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {left} more" if left > 0 else "")


def _keys(facts: PlatformFacts) -> StatusLine:
    title = "Keys"
    if facts.database.problem:
        return StatusLine("keys", title, "unknown, because the database could not be read")
    if facts.key is None:
        return StatusLine(
            "keys", title, "no active key", "Create the first key with `manage.py init`."
        )
    active, since = facts.key
    known = [each for each in facts.alive if fact(each, "key")]
    others = [each for each in known if fact(each, "key") != active]
    text = f"{active} is active, and read by {len(known) - len(others)} of {len(facts.alive)} processes"
    if len(known) < len(facts.alive):
        text += "; the others read it when they first need it"
    reason = ""
    if others and facts.now - since > KEY_READ:
        reason = (
            f"These still seal with another key: {_names(others)}. They do not read the change log: "
            "restart them."
        )
    return StatusLine("keys", title, text, reason)


def _writer(facts: PlatformFacts) -> StatusLine:
    waiting = sum(number(each, "writer", "waiting") for each in facts.alive)
    lag = _most(facts, "writer", "lag")
    failing = [each for each in facts.alive if fact(each, "writer", "problem")]
    reason = ""
    if failing:
        reason = (
            f"Records are not written in time: {_names(failing, _writer_problem)}. Calls wait, and are "
            "refused once the queue is full. See whether the database is reachable, fast, and not full."
        )
    if not settings.MCPHOST_SUMMARIES_IN_SERVER and not any(
        fact(each, "role") == WORKER for each in facts.alive
    ):
        reason += (
            " No process keeps the lists and figures of calls up to date: start `manage.py worker`, or set "
            "`MCPHOST_SUMMARIES_IN_SERVER`."
        )
    text = "nothing waits"
    if waiting:
        text = f"{waiting:.0f} submissions wait, the oldest for {_seconds(lag)}"
    behind = _most(facts, "summaries", "lag")
    if behind >= 1:
        text += f"; lists and figures of calls are {_seconds(behind)} behind"
    return StatusLine("writer", "Record writer", text, reason.strip())


def _verification(facts: PlatformFacts) -> StatusLine:
    found = facts.verified
    text, reason = "no payload has been verified yet", ""
    if found is not None and found.ended_at is not None:
        ago = _whole(facts.now - found.ended_at)
        text = f"the last one ended {ago} ago and read {found.payloads:,} payloads"
    if found is not None and found.payloads_now:
        text += f"; the present one has read {found.payloads_now:,}"
    if found is not None and found.reached is not None:
        text += f", up to entries that are {_whole(facts.now - found.reached)} old"
    if found is not None and found.wrong:
        reason = (
            f"{found.wrong:,} payloads are not what was recorded; the first belongs to the entry "
            f"{found.first_wrong}. They, or the keys of their tenant, were changed in the database: see who "
            "has access to it, and compare with a backup."
        )
    elif found is not None and facts.now - found.read_at > VERIFIED_LATE:
        reason = (
            f"No payload has been verified for {_whole(facts.now - found.read_at)}. The processes' logs say "
            "why their periodic work fails."
        )
    return StatusLine("verification", "Verification", text, reason)


def _event_loop(facts: PlatformFacts) -> StatusLine:
    late = [each for each in facts.alive if number(each, "loop", "lag") > _lag_limit(each)]
    reason = ""
    if late:
        reason = (
            f"The event loop is late: {_names(late, _loop_lag)}. A tool blocks it, or there are too many "
            "calls: the log names the tool; otherwise start another process."
        )
    text = f"at most {_seconds(_most(facts, 'loop', 'lag'))} late"
    return StatusLine("event_loop", "Event loops", text, reason)


def _change_log(facts: PlatformFacts) -> StatusLine:
    silent = [each for each in facts.alive if number(each, "change_log", "pause") > SILENT_SECONDS]
    reason = ""
    if silent:
        reason = (
            f"Changes were read late: {_names(silent, _pause)}. Until then such a process serves what it "
            "knew. See whether the database is slow, or the machine overloaded."
        )
    text = f"read at least every {_seconds(_most(facts, 'change_log', 'pause'))}"
    return StatusLine("change_log", "Change log", text, reason)


def _database(facts: PlatformFacts) -> StatusLine:
    found = facts.database
    text = f"{connection.vendor}, this page's queries took {_seconds(found.seconds)}"
    if found.most:
        text += f", {found.in_use} of {found.most} connections in use"
    reasons = []
    if found.problem:
        text = connection.vendor
        reasons.append(
            f"{found.problem} See whether the database runs, what locks it, and how busy its disk is."
        )
    if found.seconds > SLOW_SECONDS:
        reasons.append("The database is slow: look at its load, its disk, and long transactions.")
    if found.most and found.in_use >= FULL * found.most:
        reasons.append("Few connections are left: raise `max_connections`, or run fewer processes.")
    return StatusLine("database", "Database", text, " ".join(reasons))


def _pool(facts: PlatformFacts) -> StatusLine:
    waiting = [each for each in facts.alive if number(each, "database", "waiting")]
    lost = [each for each in facts.alive if number(each, "threads", "lost")]
    busy = sum(number(each, "threads", "busy") for each in facts.alive)
    rounds = sum(number(each, "rounds") for each in facts.alive)
    reasons = []
    if waiting:
        reasons.append(f"Requests wait for the database: {_names(waiting, _waiting)}.")
    if lost:
        reasons.append(
            f"Functions did not return within their time limit: {_names(lost, _lost)}. Their threads are "
            "freed only by a restart; the log names the functions."
        )
    text = f"{rounds:.0f} rounds in progress, {busy:.0f} threads of tools busy"
    return StatusLine("pool", "Threads", text, " ".join(reasons))


def _redis(facts: PlatformFacts) -> StatusLine:
    if not settings.MCPHOST_REDIS:
        every = _seconds(settings.MCPHOST_FEED_SECONDS)
        return StatusLine(
            "redis", "Redis", f"not used: processes read the change log every {every}"
        )
    without = [each for each in facts.alive if fact(each, "warnings", "redis")]
    if not without:
        return StatusLine("redis", "Redis", "wake-ups arrive")
    reason = (
        f"Redis is unreachable from {_names(without)}: changes arrive with a delay, and nothing is lost. "
        "Start Redis, or correct `REDIS_URL`."
    )
    return StatusLine("redis", "Redis", "no wake-ups", reason)


def _workers(facts: PlatformFacts) -> StatusLine:
    running = sum(number(each, "tasks", "running") for each in facts.alive)
    due = 0 if facts.tasks is None else facts.tasks.due
    text = f"{running:.0f} rounds of tasks run, {due} tasks are due"
    if not options().tasks.queued:
        return StatusLine("workers", "Workers", f"{text}; they run in the serving process")
    taking = [each for each in facts.alive if fact(each, "tasks", "takes")]
    reason = ""
    if not taking and not facts.database.problem:
        reason = "No process takes tasks: start `manage.py worker`, or set `MCPHOST_TASK_WORKER_IN_SERVER`."
    return StatusLine("workers", "Workers", f"{text}; {len(taking)} processes take them", reason)


def _sandbox(facts: PlatformFacts) -> StatusLine:
    full = [each for each in facts.alive if _is_full(each)]
    in_use, most, waiting = (
        sum(number(each, "sandbox", what) for each in facts.alive)
        for what in ("in_use", "most", "waiting")
    )
    reason = ""
    if full:
        reason = (
            f"As many scripts wait as may run: {_names(full)}. Start another process, or see with which "
            "script the workers are busy."
        )
    text = f"{in_use:.0f} of {most:.0f} sandboxed workers in use, {waiting:.0f} jobs wait"
    return StatusLine("sandbox", "Sandbox", text, reason)


_LINES: Final[tuple[Callable[[PlatformFacts], StatusLine], ...]] = (
    _processes,
    _versions,
    _code,
    _keys,
    _writer,
    _verification,
    _event_loop,
    _change_log,
    _database,
    _pool,
    _redis,
    _workers,
    _sandbox,
)
_STATES: Final = {
    "serves": "serving",
    "drains": "draining",
    "works": "running tasks only",
    "gone": "gone",
}


def fact(process: NodeRow, *path: str) -> Any:
    """Return what a process reported, by its path; None if it did not, or in another form."""
    found: Any = process.facts
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def number(process: NodeRow, *path: str) -> float:
    """Return a fact that is a number; 0 if it is not reported, or none."""
    found = fact(process, *path)
    return found if isinstance(found, int | float) else 0.0


def _most(facts: PlatformFacts, *path: str) -> float:
    return max((number(each, *path) for each in facts.alive), default=0.0)


def _problems(process: NodeRow) -> Mapping[str, Any]:
    found = fact(process, "problems")
    if not isinstance(found, Mapping):
        return {}
    return {probe: why for probe, why in found.items() if probe not in _OWN_LINES}


def _names(processes: Iterable[NodeRow], more: Callable[[NodeRow], str] = lambda each: "") -> str:
    found = [f"{each.name}{f' ({said})' if (said := more(each)) else ''}" for each in processes]
    return _shortened(found, _NAMED)


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


def _writer_problem(process: NodeRow) -> str:
    return str(fact(process, "writer", "problem"))


def _lag_limit(process: NodeRow) -> float:
    return number(process, "loop", "limit") or LAG_SECONDS


def _loop_lag(process: NodeRow) -> str:
    return _seconds(number(process, "loop", "lag"))


def _pause(process: NodeRow) -> str:
    return _seconds(number(process, "change_log", "pause"))


def _waiting(process: NodeRow) -> str:
    return f"{number(process, 'database', 'waiting'):.0f}"


def _lost(process: NodeRow) -> str:
    return f"{number(process, 'threads', 'lost'):.0f}"


def _is_full(process: NodeRow) -> bool:
    most = number(process, "sandbox", "most")
    return 0 < most <= number(process, "sandbox", "waiting")
