"""Fixtures: tenants that serve the probes, in a process with a running writer and change log."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.routing import process
from mcphost.serving import database, limits
from mcphost.serving.database import in_database
from mcphost.serving.legacy.call import under_way
from mcphost.serving.limits import CallerCounts
from tests.cast import Cast, build_cast
from tests.prepared_rows import Kept
from tests.serving.memory_primitives import MADE, offer


def publish_probes(tenant: UUID, *names: str) -> None:
    """Publish these probes at a tenant; all if none is named."""
    every = [name for name, _ in kinds.functions() if name.startswith("probe.")]
    wanted = names or [name.removeprefix("probe.") for name in every]
    publish_functions(tenant, [f"probe.{name}" for name in wanted], Actor.system("tests"))


def probes() -> ModuleType:
    """Return the module of probes as the platform loaded it."""
    return sys.modules["mcphost_tools.probe"]


async def entries(target: str, method: str = "tools/call") -> list[Entry]:
    """Return the entries of calls to a tool so far, in the order in which they were written."""
    found = Entry.objects.filter(target=target, method=method).order_by("at", "id")
    return await in_database(lambda: list(found))


def _build() -> Cast:
    cast = build_cast()
    publish_probes(cast.acme.id)
    publish_probes(cast.commons.id, "echo", "threaded_steps")
    return cast


SERVED = Kept(_build)


@contextmanager
def serving(kept: Kept[Cast], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    """Serve the kept tenants in this process."""
    kinds.discover()
    # All tests have the same `acme`; its rate limits must start without earlier calls.
    monkeypatch.setattr(limits, "_counted", CallerCounts())
    cast = kept.put()
    probes().reset()
    yield cast
    probes().release.set()
    stop()
    _wait_for_threads()


def stop() -> None:
    """Stop the process, if it runs. Neither it nor the test may leave a task on its event loop."""
    loop = process.loop
    if loop is not None:
        loop.run_until_complete(process.stop())
        left = asyncio.all_tasks(loop)
        assert not left, f"tasks are left: {left}"
        assert not under_way, "calls of sessions are left"


def _wait_for_threads() -> None:
    """Wait until the pools' threads are idle: a table cannot be emptied while one is reading it."""
    for pool in (database._pool.threads, database._unauthenticated.threads):
        everyone = threading.Barrier(pool._max_workers)
        with suppress(threading.BrokenBarrierError):
            for future in [pool.submit(everyone.wait, 5) for _ in range(pool._max_workers)]:
                future.result(10)


@pytest.fixture
def stopped(transactional_db: None) -> Iterator[None]:
    """Stop the process after the test, which starts it by a request."""
    yield
    stop()


@pytest.fixture
def served(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    """The cast, with the probes published at `acme` and `commons`."""
    with serving(SERVED, monkeypatch) as cast:
        yield cast


def _build_offered() -> Cast:
    cast = build_cast()
    publish_probes(cast.acme.id, "echo", "write")
    offer(cast.acme.id)
    return cast


OFFERED = Kept(_build_offered)


@pytest.fixture
def offered(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    """The cast, with primitives of every type published at `acme` (see tests/serving/memory_primitives.py)."""
    monkeypatch.setitem(kinds.KINDS, "made", MADE)
    with serving(OFFERED, monkeypatch) as cast:
        yield cast
