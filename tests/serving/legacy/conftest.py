import pytest

from mcphost.feed import nodes
from tests.rounds.conftest import asking

__all__ = ["asking"]


@pytest.fixture(autouse=True)
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process consider silent ones dead, as after serving for a while."""
    monkeypatch.setattr(nodes, "can_judge", lambda: True)
