"""Workers beside the nodes of a service: processes that run rounds of tasks and serve nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.handmade_calls import wait_until
from tests.e2e.processes import ROOT, STOP_SECONDS, environment, group_lives
from tests.plugins.starts import note_start

STARTED = "the worker has started"


class Worker:
    """One worker, over the data folder of a node; it may have several lives."""

    def __init__(self, home: Path, name: str, settings: Mapping[str, str], *options: str) -> None:
        self._options = options
        self._environment = environment(home, **settings)
        self._log = home.parent / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def start(self) -> None:
        note_start("worker")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "worker", *self._options],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(lambda: STARTED in self.log or not self._lives())
        assert self._lives(), self.log

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it politely: it has status 0, leaves nothing, and its log has no traceback."""
        assert self._end(signal.SIGTERM) == 0, self.log
        assert "Traceback" not in self.log, self.log

    def _lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _end(self, ending: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(ending)
        try:
            status = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            status = self._process.wait()
        assert not group_lives(self._process.pid)
        self._process = None
        return status

    def close(self) -> None:
        if self._lives():
            self.kill()
