"""Fixtures for all tests."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from django.core.management.commands import flush
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils.module_loading import autodiscover_modules
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from mcphost.audit import last_use, windows
from mcphost.calls.sessions import session_uses
from mcphost.console.records import pills
from mcphost.console.static_files import StaticFilesMiddleware
from mcphost.feed.loop import loop
from mcphost.feed.nodes import heartbeat
from mcphost.kinds.http import openapi_finding, openapi_job
from mcphost.kinds.script.kind import script_kind
from mcphost.observability.availability import availability
from mcphost.protocol.shapes import wire_shapes
from mcphost.routing import process
from mcphost.sandbox.single import JobLimits
from mcphost.serving import database, shutdown
from tests.cast import Cast, build_cast
from tests.prepared_rows import Kept

Elsewhere = Callable[[], AbstractContextManager[None]]
CAST = Kept(build_cast)
PATIENCE = 10
"""Seconds until a thread that is ending has ended."""
LASTING = (
    "MainThread",
    "tool-",
    "mcphost-load",
    "sandbox_",
    "ThreadPoolExecutor-",
    "mcphost-live_",
    "mcphost-metrics_",
    "mcphost-upkeep_",
    *database.POOLS,
)
"""The threads that live as long as the process, by the beginnings of their names: they wait for work. One is of
asgiref."""
OF_MIGRATIONS = frozenset({"django_content_type", "auth_permission"})
"""Tables whose rows are the same after each migration."""
OTHERS_AWAY = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)

# How long an example takes depends on the machine only.
settings.register_profile(
    "without-clocks", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("without-clocks")


@pytest.fixture(scope="session", autouse=True)
def _nothing_left() -> Iterator[None]:
    """Fail the run if something is left at its end: a thread, an asyncio task, or a connection whose thread
    has ended."""
    opened: list[tuple[BaseDatabaseWrapper, threading.Thread, str | None]] = []

    def note(connection: BaseDatabaseWrapper, **_: Any) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST")
        opened.append((connection, threading.current_thread(), test))

    connection_created.connect(note)
    yield
    threads = _threads_left()
    tasks = [each for each in tuple(asyncio.tasks._all_tasks) if not each.done()]
    held = [test for each, who, test in opened if each.connection and not who.is_alive()]
    assert (threads, tasks, held) == ([], [], [])


def _threads_left() -> list[str]:
    """The threads that do not end by themselves. Pools without a name are asgiref's: `async_to_sync` makes
    one for each call, whose thread ends some time after the pool was collected."""
    threads = [each for each in threading.enumerate() if not each.name.startswith(LASTING)]
    ends = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0, ends - time.monotonic()))
    return [thread.name for thread in threads if thread.is_alive()]


@pytest.fixture(scope="session", autouse=True)
def _wired() -> Iterator[None]:
    """Register ports and subscribe caches to the change log, as in a started process that has met
    requests of all kinds. Fail the run if a test has subscribed something for good."""
    autodiscover_modules("wiring")
    process.connect()
    wire_shapes.load()
    connection_created.connect(_keep_open)
    before = _subscribers()
    yield
    assert _subscribers() == before


def _subscribers() -> int:
    """How many callbacks the change log and the drain have."""
    of_changes = sum(map(len, loop._subscribers.values())) + len(loop._gap_callbacks)
    return of_changes + sum(map(len, shutdown._callbacks.values()))


def _keep_open(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Let the pools' threads, which live as long as the run, keep their connections. Threads of tests end with
    theirs closed (CONN_MAX_AGE)."""
    if threading.current_thread().name.startswith(database.POOLS):
        connection.close_at = None


@pytest.fixture(scope="session", autouse=True)
def _unhurried() -> Iterator[None]:
    """Let pages look, and the database answer, for as long as they need: how long that takes depends on
    the machine only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "ANSWER_SECONDS", 60.0)
        patch.setattr(windows, "COMPARING_SECONDS", 60.0)
        patch.setattr(pills, "FINDING_SECONDS", 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _files_found_once() -> Iterator[None]:
    """Let all clients of Django share the static files that the first one has found. Each loads the middleware,
    which looks at every file."""
    find, found = StaticFilesMiddleware.add_files_from_finders, {}

    def share(middleware: StaticFilesMiddleware) -> None:
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesMiddleware, "add_files_from_finders", share)
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Empty the tables quickly after each test that commits, and let the database be dropped even
    if threads still use it at the end."""
    connection.ops.sql_flush = _deletions  # type: ignore[method-assign]
    flush.emit_post_migrate_signal = _say_nothing  # type: ignore[attr-defined]
    yield
    with django_db_blocker.unblock():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(OTHERS_AWAY)


@pytest.fixture(autouse=True)
def _nothing_remembered(_wired: None) -> Iterator[None]:
    """Clear all that earlier tests cached: everything that a gap in the change log drops.

    So every cache of database content must use `loop.on_gap`, which it must do anyway.
    """
    _drop_everything()
    script_kind.sandbox.check_slots._begun.clear()  # the cast has one id in all tests
    script_kind.sandbox._sound.clear()
    yield
    assert process.loop is None, "the test has left its process running"
    availability.forget()
    _drop_everything()


@pytest.fixture
def cast(db: None) -> Cast:
    """The fixed cast (tests/cast.py), as if it had just been created."""
    return CAST.put()


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAPI documents are read in this process: starting one for each takes half a second."""

    def run_here(module: str, job: bytes, limits: JobLimits) -> bytes:
        return openapi_job.run(job)

    monkeypatch.setattr(openapi_finding, "run_single", run_here)


@pytest.fixture
def elsewhere(db: None, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """`with elsewhere():` commits inside the block are as if made by another process.

    This process gets no notice of them: the test polls the change log by hand (`loop.poll()`).
    Only for tests with `django_db(transaction=True)`.
    """

    @contextmanager
    def another_process() -> Iterator[None]:
        loop.poll()
        with monkeypatch.context() as patch:
            patch.setattr(loop, "poll", lambda: True)
            yield

    return another_process


def _deletions(style: Any, tables: Iterable[str], **_: Any) -> list[str]:
    """Return what empties tables but those that migrations fill.

    PostgreSQL's TRUNCATE makes new files for each table, however few its rows. Foreign keys of
    Django's tables are checked at the commit, so the order of the tables does not matter.
    """
    return [
        f"DELETE FROM {connection.ops.quote_name(table)}"
        for table in tables
        if table not in OF_MIGRATIONS
    ]


def _say_nothing(*_: Any, **__: Any) -> None:
    """Stand in for the signal that fills the tables which stay as they are."""


def _drop_everything() -> None:
    for drop in tuple(loop._gap_callbacks):
        drop()
    last_use.discard_unwritten()
    session_uses.forget_all()
    heartbeat._beaten_at = None  # a process that has written heartbeats judges others by them
