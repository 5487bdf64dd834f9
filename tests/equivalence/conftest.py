"""The process in which scenarios run."""

import sys
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.seeding import publish_functions
from mcphost.serving import shutdown
from mcphost.serving.execution.ports import threads
from tests import mcp
from tests.cast import ACTOR, Cast, build_cast
from tests.equivalence.clock import ids_apart, inject
from tests.equivalence.observers import Exchanges
from tests.equivalence.run import Run
from tests.prepared_rows import Kept
from tests.served import serving

TOOLS = "transcribed"
GUARD = "mcp:guarded"


def _build() -> Cast:
    with ids_apart():
        cast = build_cast()
        every = [name for name, _ in kinds.functions() if name.startswith(f"{TOOLS}.")]
        for tenant in (cast.acme, cast.commons):
            publish_functions(tenant.id, every, Actor.system("tests"))
        guarded = PrimitiveFields("guarded", {"function": f"{TOOLS}.text"}, scopes=(GUARD,))
        services.publish(services.create(cast.acme.id, guarded, ACTOR).id, ACTOR)
    return cast


TRANSCRIBED = Kept(_build)


@pytest.fixture
def run(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> Iterator[Run]:
    """The cast with the tools of `tests/probes/transcribed.py`, a stopped clock and counted ids."""
    settings.MCPHOST_STREAM_AFTER_SECONDS = 600  # never: only the tool opens a stream
    settings.MCPHOST_COMMENT_SECONDS = 600
    threads.cache_clear()  # the pool keeps the limit under which it was made
    clock = inject(monkeypatch)
    exchanges = Exchanges(mcp.application)
    monkeypatch.setattr(mcp, "application", exchanges)
    callbacks = {phase: list(known) for phase, known in shutdown._callbacks.items()}
    monkeypatch.setattr(shutdown, "_callbacks", callbacks)
    with serving(TRANSCRIBED, monkeypatch) as cast:
        tools = sys.modules[f"mcphost_tools.{TOOLS}"]
        tools.reset()
        yield Run(cast, clock, settings, monkeypatch, tools, exchanges)
    threads.cache_clear()
