"""A database file takes one server: what a process remembers of it, another would not hear of at once,
and both would write.

Commands beside a running server are fine: they come and go, and tell it of their changes.
"""

import fcntl
import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.db import connection

_held: dict[Path, int] = {}


def claim() -> None:
    """Be the one server of our database's file, if it is one. Raises ImproperlyConfigured."""
    database = file_of(connection.vendor, str(connection.settings_dict["NAME"]))
    if database is not None:
        claim_file(database)


def claim_file(database: Path) -> None:
    """Be the one server of this file, until this process ends; again changes nothing.

    The kernel lets go of the claim of a process that dies. Raises ImproperlyConfigured, naming the
    process, when there is another.
    """
    if database in _held:
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
    _held[database] = descriptor


def release(database: Path) -> None:
    """Let go of it before the process ends."""
    os.close(_held.pop(database))


def file_of(vendor: str, name: str) -> Path | None:
    """The file of a database; None for one in memory, and for a server's."""
    in_memory = ":memory:" in name or "mode=memory" in name
    return Path(name) if vendor == "sqlite" and not in_memory else None
