"""A pool of workers, shared by the tests of a module: a worker takes a while to start."""

from collections.abc import Iterator

import pytest

from mcphost.sandbox.pool import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    pool = Sandbox(4, wait_seconds=30)
    yield pool
    pool.close()
