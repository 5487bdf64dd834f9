"""Counts of values in buckets of logarithmic width, from which percentiles are read within 5%.

A bucket contains the values above RATIO to the power of its number less one, up to RATIO to the power
of its number. Zero has a bucket of its own. Histograms of any times and processes can be added up.
"""

import math
from collections.abc import Mapping
from typing import Final

RATIO: Final = 1.1
"""The quotient of a bucket's bounds. A value differs from its bucket's by at most
(RATIO - 1) / (RATIO + 1), which is 4.8%."""
ZERO: Final = -1
"""The bucket of zero, and of anything below."""
LAST_BUCKET: Final = 400
"""The last bucket: it also contains everything above."""

_LOG: Final = math.log(RATIO)
_MIDDLE: Final = 2 * RATIO / (RATIO + 1)


def bucket_of(value: int) -> int:
    """Return the number of the bucket that contains a value."""
    return ZERO if value <= 0 else min(math.ceil(math.log(value) / _LOG - 1e-9), LAST_BUCKET)


def value_of(bucket: int) -> int:
    """Return the value that stands for a bucket: as far from its lower as from its upper bound."""
    return 0 if bucket <= ZERO else round(RATIO ** (bucket - 1) * _MIDDLE)


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """Return the value that `share` of all values do not exceed; None if there are no values."""
    total = sum(counts.values())
    rank, counted = max(1, math.ceil(share * total)), 0
    for bucket in sorted(counts):
        counted += counts[bucket]
        if counted >= rank:
            return value_of(bucket)
    return None
