"""The master key is checked before the first request, or once there is a database to check it with."""

import logging
import os
import signal
import threading

from django.db import InterfaceError, OperationalError, connection, connections

from mcphost.vault.errors import VaultError
from mcphost.vault.services import verify_master_key

AGAIN_SECONDS = 1.0

log = logging.getLogger(__name__)


class KeyCheck:
    """One process's check. A database that is away at the start keeps it unready, and does not end it.

    A file of a database is never away: what is wrong with one is raised.
    """

    def __init__(self) -> None:
        self._passed = True
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        """Check now, in a thread that may wait for the database. Raises VaultError."""
        try:
            verify_master_key()
            self._passed = True
        except (OperationalError, InterfaceError) as error:
            if connection.vendor != "postgresql":
                raise
            if self._passed:
                log.error("the database cannot be reached: %s", _first_line(error))
            self._passed = False
        finally:
            connections.close_all()

    def start(self) -> None:
        """Go on trying, if the first time there was no database."""
        if not self._passed:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="mcphost-key", daemon=True)
            self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def problem(self) -> str | None:
        """What keeps the process from its work, for people."""
        return None if self._passed else "the database has not been reached since the start"

    def _run(self) -> None:
        while not self._passed and not self._stopping.wait(AGAIN_SECONDS):
            try:
                self.check()
            except VaultError as error:
                log.critical("the server ends: %s", error)
                os.kill(os.getpid(), signal.SIGTERM)
                return
            except Exception:
                log.exception("the master key could not be checked")
        if self._passed:
            log.info("the database has been reached")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
