"""Tenants that serve the probes, in a process whose writer and feed run."""

import sys
from collections.abc import Iterator
from types import ModuleType
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.serving import lifecycle
from mcphost.serving.hop import in_database
from tests.cast import Cast


def publish_probes(tenant: UUID) -> None:
    """Publish every probe at a tenant."""
    references = [name for name, _ in kinds.functions() if name.startswith("probe.")]
    publish_functions(tenant, references, Actor.system("tests"))


def probes() -> ModuleType:
    """The module of probes as the platform loaded it."""
    return sys.modules["mcphost_tools.probe"]


async def entries(**conditions: object) -> list[Entry]:
    """The records so far, in the order in which they were made."""
    return await in_database(lambda: list(Entry.objects.filter(**conditions).order_by("at", "id")))


@pytest.fixture
def served(transactional_db: None, cast: Cast) -> Iterator[Cast]:
    """The cast, with the probes published at `acme` and `commons`."""
    publish_probes(cast.acme.id)
    publish_probes(cast.commons.id)
    for event in (probes().cancelled, probes().running, probes().release):
        event.clear()
    probes().ran.clear()
    lifecycle.ensure_started()
    yield cast
    probes().release.set()
    lifecycle.stop()
