"""Helpers for tests that run a server in this process."""

import gc
import socket
from collections.abc import Iterator

import pytest


def free_port() -> int:
    """A free TCP port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def settled_memory() -> Iterator[None]:
    """Nothing is frozen; for the tests that follow the garbage collector, which `serve` tunes, is
    as tests/plugins/garbage.py left it."""
    threshold = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(*threshold)
