from collections.abc import Iterator

import pytest

from mcphost.feed import nodes
from mcphost.serving.legacy import call, stream
from tests.rounds.conftest import asking

__all__ = ["asking"]


@pytest.fixture(autouse=True)
def _nothing_under_way() -> Iterator[None]:
    """Forget the calls and streams of a test, which have ended with its event loop."""
    yield
    stream.live.clear()
    call.under_way.clear()


@pytest.fixture(autouse=True)
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process consider silent ones dead, as after serving for a while."""
    monkeypatch.setattr(nodes, "can_judge", lambda: True)
