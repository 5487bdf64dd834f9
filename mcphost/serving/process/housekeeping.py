"""Periodic work of a process, in a database thread of its own."""

import logging
import threading
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from mcphost.calls import links, questions, session_calls, sessions, streams
from mcphost.calls.sessions import session_uses
from mcphost.identity import attempts, browser_sessions
from mcphost.identity.last_use import last_use
from mcphost.serving.execution import claims
from mcphost.serving.legacy import takeover
from mcphost.vault.lifecycle import run_due_transitions

EVERY_SECONDS = 10.0
PORTIONS_AT_ONCE = 100

Chore = Callable[[], object]


def _write_last_uses() -> None:
    last_use.flush(timezone.now())


def _forget_links() -> None:
    links.prune(timezone.now())


def _prune_expired() -> None:
    _in_portions(streams.prune, session_calls.prune, questions.prune, attempts.prune)


def _prune_sessions() -> None:
    _in_portions(sessions.prune, sessions.prune_streams)


def _prune_browser_sessions() -> None:
    _in_portions(browser_sessions.prune)


def _in_portions(*prunes: Callable[[], int]) -> None:
    """Prune in short transactions, so that others are not blocked, until nothing is left.

    At most PORTIONS_AT_ONCE transactions for each function.
    """
    for prune in prunes:
        portions = 1
        while prune() == streams.PRUNED_AT_ONCE and portions < PORTIONS_AT_ONCE:
            portions += 1


CHORES: tuple[Chore, ...] = (
    _write_last_uses,
    claims.tidy,
    takeover.look,
    run_due_transitions,
    _forget_links,
    session_uses.flush,
    _prune_sessions,
    _prune_expired,
    _prune_browser_sessions,
)
"""All chores, in order. An exception in one does not prevent the others."""

log = logging.getLogger(__name__)


class Housekeeping:
    """Runs the chores every EVERY_SECONDS. Call `start` and `stop` once each."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._put_off = False
        self._thread = threading.Thread(target=self._run, name="mcphost-housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Run the chores once more and end the thread; wait for that at most `timeout` seconds."""
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
        """Run each chore. That the database is unreachable is logged once."""
        put_off = False
        for chore in CHORES:
            try:
                chore()
            except (OperationalError, InterfaceError) as error:
                if not self._put_off:
                    log.warning("housekeeping waits for the database: %s", type(error).__name__)
                self._put_off = put_off = True
                connections.close_all()
            except Exception:
                log.exception("housekeeping goes on after an error")
                connections.close_all()
        self._put_off = put_off
