"""When each key of the ring last sealed and opened a token: noted in memory, written by housekeeping."""

from datetime import datetime
from typing import Final

from mcphost.audit.last_use import LastUse
from mcphost.vault.models import RingKey

sealed: Final[LastUse[str]] = LastUse(RingKey, "last_sealed_at")
opened: Final[LastUse[str]] = LastUse(RingKey, "last_opened_at")


def flush(now: datetime) -> int:
    """Write the notes, each key at most once a minute; return how many were written."""
    return sealed.flush(now) + opened.flush(now)
