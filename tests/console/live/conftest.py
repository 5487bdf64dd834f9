"""Fixtures: quick turns, and a hub that has ended before the tables are emptied."""

from collections.abc import AsyncIterator

import pytest

from mcphost.console.live import hub as hubs
from mcphost.serving import shutdown
from tests.console.live.live_client import ended


@pytest.fixture(autouse=True)
async def _ended(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Turns come one after another; after the test no socket is open."""
    monkeypatch.setattr(hubs, "TURN_SECONDS", 0.05)
    monkeypatch.setattr(hubs, "TOGETHER_SECONDS", 0)
    yield
    shutdown.reset()
    await ended()
