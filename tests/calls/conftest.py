from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

from tests.audit.conftest import Start, _cipher, clock, failures, gate, start

__all__ = ["Start", "_cipher", "clock", "failures", "gate", "start"]


@pytest.fixture
def other() -> Iterator[Any]:
    """A second connection."""
    made = connections.create_connection(DEFAULT_DB_ALIAS)
    yield made
    made.close()
