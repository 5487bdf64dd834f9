"""Counts the work of code instead of timing it: the counts are the same on every machine, however busy.

What a function of an extension does inside of one call is not counted. Where that matters there are
tests marked `cost` (tests/plugins/costs.py).
"""

import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, Self


class Work:
    """What this thread executes inside the block, in the functions that are called there.

    `steps` counts lines of Python, those of a loop each time they run. `calls` counts calls from Python
    of functions that are not written in it, by name: `loads`, `is_valid`.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.calls: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._outer = sys.gettrace(), sys.getprofile()  # measuring coverage is one of them
        gc.disable()  # a collection may run finalizers, of other tests
        sys.settrace(self._trace)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        trace, profile = self._outer
        sys.setprofile(profile)
        sys.settrace(trace)
        gc.enable()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.steps += event == "line"
        return self._trace

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            self.calls[argument.__name__] += 1


def peak_of(act: Callable[..., object], *arguments: object) -> int:
    """Return the peak of what Python's allocators gave out meanwhile, in bytes."""
    tracemalloc.start()
    try:
        act(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
