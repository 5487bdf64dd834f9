from collections.abc import Iterator

import pytest

from mcphost.serving.legacy import calls, outgoing
from tests.rounds.conftest import asking

__all__ = ["asking"]


@pytest.fixture(autouse=True)
def _nothing_under_way() -> Iterator[None]:
    """What a test leaves behind has ended with its event loop."""
    yield
    outgoing.live.clear()
    calls.under_way.clear()
