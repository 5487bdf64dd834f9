"""What tests that serve in this process need of it."""

import gc
import socket
from collections.abc import Iterator

import pytest


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def settled_memory() -> Iterator[None]:
    """`serve` tunes the garbage collector of its process; this one goes on with other tests."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
