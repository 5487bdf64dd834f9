"""What a process does now and then, in a thread of its own that may wait for the database."""

import logging
import threading
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from mcphost.calls import links, questions, sessions, streamed, streams
from mcphost.identity.last_use import last_use
from mcphost.serving import claiming
from mcphost.serving.legacy import adoption
from mcphost.vault.lifecycle import tend

EVERY_SECONDS = 10.0
PORTIONS_AT_ONCE = 100

Chore = Callable[[], object]


def _write_last_uses() -> None:
    last_use.flush(timezone.now())


def _forget_links() -> None:
    links.prune(timezone.now())


def _forget_streams() -> None:
    for prune in (streams.prune, streamed.prune, questions.prune):
        portions = 1
        while prune() == streams.PRUNED_AT_ONCE and portions < PORTIONS_AT_ONCE:
            portions += 1


CHORES: tuple[Chore, ...] = (
    _write_last_uses,
    claiming.tidy,
    adoption.look,
    tend,
    _forget_links,
    sessions.prune,
    _forget_streams,
)
"""What is done, each by itself: one that raises keeps none of the others from its work."""

log = logging.getLogger(__name__)


class Housekeeping:
    """Does the chores every few seconds. `start` and `stop` once each."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._put_off = False
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
        done = [self._does(chore) for chore in CHORES]
        self._put_off = False in done

    def _does(self, chore: Chore) -> bool:
        """Do it; False if it has to wait for the database, which is said once."""
        try:
            chore()
            return True
        except (OperationalError, InterfaceError) as error:
            if not self._put_off:
                log.warning("housekeeping waits for the database: %s", type(error).__name__)
            self._put_off = True
            connections.close_all()
            return False
        except Exception:
            log.exception("housekeeping goes on after an error")
            connections.close_all()
            return True
