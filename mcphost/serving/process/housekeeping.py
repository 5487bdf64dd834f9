"""Periodic work of a process, in a database thread of its own."""

import logging
import threading
from contextlib import suppress

from django.db import connections
from django.utils import timezone

from mcphost.audit import last_use
from mcphost.calls.sessions import session_uses
from mcphost.serving.execution import claims
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy.get_stream import get_streams
from mcphost.serving.options import options
from mcphost.serving.tasks import upkeep
from mcphost.vault import selectors as keys
from mcphost.vault.errors import VaultError

EVERY_SECONDS = 10.0


def _write_last_uses() -> None:
    last_use.flush(timezone.now())


def _write_session_uses() -> None:
    """A session is in use as long as a call of it runs, waits for answers, or its client listens."""
    for session in {*calls.sessions_in_use(), *get_streams.sessions()}:
        session_uses.note(session)
    session_uses.flush()


def _read_ring() -> None:
    """Read the ring after a change, before the next seal needs it: heartbeats then report its keys."""
    with suppress(VaultError):
        keys.ring()


WRITES: tuple[upkeep.Chore, ...] = (_write_last_uses, _write_session_uses)
"""The chores that write what a process remembers. They run at its end, too: the rest would be lost."""
CHORES: tuple[upkeep.Chore, ...] = (*WRITES, _read_ring, claims.tidy)
"""The chores that each process has, in order."""

log = logging.getLogger(__name__)


class Housekeeping:
    """Runs the chores every EVERY_SECONDS. Call `start` and `stop` once each.

    `searches` are chores that find the work of dead processes.
    """

    def __init__(self, *searches: upkeep.Chore) -> None:
        self._chores = (*CHORES, *searches)
        self._stopping = threading.Event()
        self._put_off = False
        self._thread = threading.Thread(
            target=self._work_until_stopped, name="mcphost-housekeeping", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Write what the process remembers and end the thread; wait for that at most `timeout` seconds."""
        self._stopping.set()
        self._thread.join(timeout)

    def _work_until_stopped(self) -> None:
        try:
            while not self._stopping.wait(EVERY_SECONDS):
                self.work()
            self._run_chores(WRITES)
        finally:
            connections.close_all()

    def work(self) -> None:
        """Run the chores once, and the platform's unless its queue does. In a database thread."""
        shared = () if options().tasks.queued else upkeep.CHORES
        self._run_chores((*self._chores, *shared))

    def _run_chores(self, chores: tuple[upkeep.Chore, ...]) -> None:
        """Run these chores. Log once that the database is unreachable."""
        unreachable = upkeep.run(chores)
        if unreachable and not self._put_off:
            log.warning("housekeeping waits for the database: %s", unreachable)
        self._put_off = bool(unreachable)
