"""Checks before the first request: the master key, and that a database file has only one server."""

import fcntl
import logging
import os
import signal
import threading
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError, connection, connections

from mcphost.vault.errors import VaultError
from mcphost.vault.services import verify_master_key

AGAIN_SECONDS = 1.0

log = logging.getLogger(__name__)


class KeyCheck:
    """The master key check of a process. If the database is unreachable at the start, the process
    stays unready instead of ending.

    A database file is never away: its errors are raised.
    """

    def __init__(self) -> None:
        self._passed = True
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        """Check now. In a database thread. Raises VaultError."""
        try:
            verify_master_key()
            self._passed = True
        except (OperationalError, InterfaceError) as error:
            if connection.vendor != "postgresql":
                raise
            if self._passed:
                first_line = str(error).partition("\n")[0]
                log.error("the database cannot be reached: %s", first_line)
            self._passed = False
        finally:
            connections.close_all()

    def start(self) -> None:
        """Repeat the check in a thread if the database was unreachable the first time."""
        if not self._passed:
            self._stopping.clear()
            self._thread = threading.Thread(
                target=self._check_until_passed, name="mcphost-key", daemon=True
            )
            self._thread.start()

    def stop(self, timeout: float) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def problem(self) -> str | None:
        """A readable reason why the process is not ready; None if the check has passed."""
        return None if self._passed else "the database has not been reached since the start"

    def _check_until_passed(self) -> None:
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


_locks: dict[Path, int] = {}


def claim() -> None:
    """Lock the database's file, if it has one, for this server. Raises ImproperlyConfigured."""
    database = file_of(connection.vendor, str(connection.settings_dict["NAME"]))
    if database is not None:
        claim_file(database)


def claim_file(database: Path) -> None:
    """Lock a database file for this server until the process ends. A second call does nothing.

    The kernel releases the lock of a process that dies. Raises ImproperlyConfigured, with the other
    process's id, when another server has the lock.
    """
    if database in _locks:
        return
    lock = database.with_name(f"{database.name}.server")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise ImproperlyConfigured(
            f"another server (process {process}) serves {database}: stop it first. Several servers "
            "of one service need PostgreSQL (DATABASE_URL)"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, b"%d\n" % os.getpid())
    _locks[database] = descriptor


def release(database: Path) -> None:
    """Release the lock before the process ends."""
    os.close(_locks.pop(database))


def file_of(vendor: str, name: str) -> Path | None:
    """The file of an SQLite database; None if it is in memory, and for PostgreSQL."""
    in_memory = ":memory:" in name or "mode=memory" in name
    return Path(name) if vendor == "sqlite" and not in_memory else None
