"""A Redis server for one test, on a port that stays the same over restarts."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 20


class Redis:
    """A server without persistence: its data is gone when it stops."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Be there, as before if it is already."""
        if self._process is not None:
            return
        loose = ("--save", "", "--appendonly", "no", "--dir", str(self._folder))
        argv = ("redis-server", "--port", str(self.port), "--bind", "127.0.0.1", *loose)
        self._process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), PATIENCE).close()
            except OSError:
                assert time.monotonic() < ends, "Redis did not start"
                time.sleep(0.05)  # polls another process
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None


@contextmanager
def redis(folder: Path) -> Iterator[Redis]:
    """Yield a server that is not started yet. Without Redis, skip the test; in CI, fail."""
    if shutil.which("redis-server") is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("there is no redis-server")
    made = Redis(folder)
    try:
        yield made
    finally:
        made.stop()
