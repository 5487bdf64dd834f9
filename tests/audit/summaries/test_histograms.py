"""Histograms of logarithmic buckets."""

import math

from hypothesis import given
from hypothesis import strategies as st

from mcphost.audit.summaries.histograms import bucket_of, percentile

WEEK_US = 7 * 24 * 3600 * 1_000_000


@given(
    st.lists(st.integers(1, WEEK_US), min_size=1, max_size=400), st.sampled_from([0.5, 0.95, 0.99])
)
def test_a_percentile_is_within_five_percent(values: list[int], share: float) -> None:
    counts: dict[int, int] = {}
    for value in values:
        counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
    exact = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    found = percentile(counts, share)
    assert found is not None
    assert abs(found - exact) <= 0.05 * exact + 0.5
