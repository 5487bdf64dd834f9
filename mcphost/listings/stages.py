"""How input requests end, as lists filter and figures count it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "answered": ("accept", "received"),
    "declined": ("decline",),
    "cancelled": ("cancel",),
    "invalid": ("invalid",),
    "expired": ("expired",),
    "stopped": ("stopped",),
    "never": ("never", "repeated", "lost", "failed"),
    "open": ("open",),
}
"""The stages, with the endings that each counts. Together they are all that was asked."""
OVERDUE: Final = "overdue"
"""Those that are open for longer than the target time of their tool."""
EXPIRING: Final = "expiring"
EXPIRES_SOON: Final = timedelta(minutes=10)
"""Those of clients that are open and expire within this time."""
RESPONDED: Final = "responded"
"""Those with any response: the time to respond is measured of these."""
RESPONDED_STATES: Final = ("accept", "received", "decline", "cancel", "invalid", "failed")


def stage_count(endings: Mapping[str, int], stage: str) -> int:
    """Return how many input requests ended in a stage, of counts by ending."""
    return sum(endings.get(ending, 0) for ending in STAGES[stage])
