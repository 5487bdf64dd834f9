"""Work on the event loop in portions: by the clock, because tenants decide how much a step takes."""

import time

SECONDS = 0.005


class Breath:
    """Says when a portion has been done, and others on the event loop should have a turn."""

    def __init__(self) -> None:
        self._ends = time.perf_counter() + SECONDS

    def is_out(self) -> bool:
        """Whether it is time. Then the next portion begins."""
        now = time.perf_counter()
        if now < self._ends:
            return False
        self._ends = now + SECONDS
        return True
