"""Tenants that serve tools which become tasks."""

from collections.abc import AsyncIterator, Iterator

import pytest

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.routing import process
from tests.cast import Cast, build_cast
from tests.prepared_rows import Kept
from tests.rounds.conftest import module
from tests.served import serving


def _build() -> Cast:
    cast = build_cast()
    every = [name for name, _ in kinds.functions() if name.startswith("tasks.")]
    for tenant in (cast.acme, cast.globex, cast.commons):
        publish_functions(tenant.id, every, Actor.system("tests"))
    return cast


TASKS = Kept(_build)


@pytest.fixture
def tasks(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    """The cast, with the tools of `tests/probes/tasks.py` at `acme`, `globex` and `commons`."""
    with serving(TASKS, monkeypatch) as cast:
        module("tasks").reset()
        yield cast


@pytest.fixture(autouse=True)
async def _stopped(tasks: Cast) -> AsyncIterator[None]:
    """Stop the threads that wake the event loop before it is closed."""
    yield
    await process.stop()
