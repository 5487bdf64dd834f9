"""Tenants that serve tools which ask."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from tests.cast import Cast, build_cast
from tests.prepared_rows import Kept
from tests.served import serving

MODULES = ("asking", "careless", "contexts", "interpreter")


def _build() -> Cast:
    cast = build_cast()
    every = [name for name, _ in kinds.functions() if name.split(".")[0] in MODULES]
    for tenant in (cast.acme, cast.globex, cast.commons):
        publish_functions(tenant.id, every, Actor.system("tests"))
    return cast


ASKING = Kept(_build)


def module(name: str) -> ModuleType:
    """A module of probes as the platform loaded it."""
    return sys.modules[f"mcphost_tools.{name}"]


@pytest.fixture
def asking(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    """The cast, with everything that asks published at `acme`, `globex` and `commons`."""
    with serving(ASKING, monkeypatch) as cast:
        for name in MODULES:
            module(name).reset()
        yield cast
