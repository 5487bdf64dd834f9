"""When tokens were last used: noted in memory at each request, written to the database later.

All processes together write a token at most once a minute, so the stored time may be a minute old.
"""

from datetime import datetime, timedelta

from django.db import DEFAULT_DB_ALIAS, connections, transaction

WRITE_AFTER = timedelta(minutes=1)
WRITTEN_AT_ONCE = 500

# Never sets an earlier time, and writes nothing if another process has just written.
_UPDATE = (
    "UPDATE identity_token SET last_used_at = %s "
    "WHERE id = %s AND (last_used_at IS NULL OR last_used_at <= %s)"
)


class LastUse:
    """Notes of when tokens were used, and of when each was last written.

    `note` is called at every request; `flush` is called every few seconds by the process's
    housekeeping, in a thread that may wait for the database.
    """

    def __init__(self) -> None:
        self._noted: dict[str, datetime] = {}
        self._written: dict[str, datetime] = {}

    def note(self, token_id: str, now: datetime) -> None:
        self._noted[token_id] = now

    def flush(self, now: datetime) -> int:
        """Write the notes of tokens not written for a minute, at most 500; return how many.

        A database error is raised, and keeps the notes for the next call.
        """
        recent = now - WRITE_AFTER
        self._written = {token: at for token, at in self._written.items() if at > recent}
        due = [use for use in list(self._noted.items()) if use[0] not in self._written]
        due = due[:WRITTEN_AT_ONCE]
        if due:
            _write(due)
        for token_id, used_at in due:
            self._written[token_id] = now
            if self._noted.get(token_id) == used_at:
                del self._noted[token_id]
        return len(due)

    def forget_all(self) -> None:
        """Drop the notes without writing them."""
        self._noted = {}
        self._written = {}


def _write(uses: list[tuple[str, datetime]]) -> None:
    connection = connections[DEFAULT_DB_ALIAS]
    adapt = connection.ops.adapt_datetimefield_value
    rows = [
        (adapt(used_at), token_id, adapt(used_at - WRITE_AFTER))
        for token_id, used_at in sorted(uses)
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(_UPDATE, rows)


last_use = LastUse()
