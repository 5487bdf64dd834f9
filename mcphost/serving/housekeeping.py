"""What a process does now and then, in a thread of its own that may wait for the database."""

import logging
import threading

from django.db import connections
from django.utils import timezone

from mcphost.identity.last_use import last_use

EVERY_SECONDS = 10.0

log = logging.getLogger(__name__)


class Housekeeping:
    """Writes down when tokens were last used. `start` and `stop` once each."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mcphost-housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Do it once more, and end."""
        self._stopping.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(EVERY_SECONDS):
                self._round()
            self._round()
        finally:
            connections.close_all()

    def _round(self) -> None:
        try:
            last_use.flush(timezone.now())
        except Exception:
            log.exception("housekeeping goes on after an error")
            connections.close_all()
