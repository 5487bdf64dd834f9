"""Tenants that serve the probes, in a process whose writer and feed run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from uuid import UUID

import pytest
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.serving import lifecycle, limits
from mcphost.serving.hop import in_database
from tests.cast import Cast, build_cast
from tests.keeping import Kept
from tests.serving.made import MADE, offer


def publish_probes(tenant: UUID, *names: str) -> None:
    """Publish these probes at a tenant; every one if none is named."""
    every = [name for name, _ in kinds.functions() if name.startswith("probe.")]
    wanted = names or [name.removeprefix("probe.") for name in every]
    publish_functions(tenant, [f"probe.{name}" for name in wanted], Actor.system("tests"))


def probes() -> ModuleType:
    """The module of probes as the platform loaded it."""
    return sys.modules["mcphost_tools.probe"]


async def entries(target: str, method: str = "tools/call") -> list[Entry]:
    """What is recorded of calls to a tool so far, in the order in which it was made."""
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
    """A process that serves what is kept."""
    kinds.discover()
    # It is the same `acme` in every test, and has not called anything yet.
    monkeypatch.setattr(limits, "_rates", MovingWindowRateLimiter(MemoryStorage()))
    cast = kept.put()
    probes().reset()
    yield cast
    probes().release.set()
    lifecycle.stop()


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
    """The cast, with something of everything published at `acme` (see tests/serving/made.py)."""
    monkeypatch.setitem(kinds.KINDS, "made", MADE)  # type: ignore[arg-type]
    with serving(OFFERED, monkeypatch) as cast:
        yield cast
