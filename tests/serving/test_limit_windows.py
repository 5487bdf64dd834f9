"""Moving windows in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.serving import limits as windows_module
from mcphost.serving.limits import Windows

MINUTE = 60


class Clock:
    """Replaces `time`; stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(windows_module, "time", made)
    return made


def test_the_number_of_hits_within_any_minute_is_limited(clock: Clock) -> None:
    windows = Windows()
    for _ in range(2):
        assert windows.hit("a", 2) == 0
        clock.now += 20
    assert windows.hit("a", 2) == 20
    assert windows.hit("a", 3) == 0
    assert windows.hit("b", 1) == 0
    assert windows.hit("b", 1) == MINUTE
    clock.now = 1060
    assert windows.hit("a", 3) == 0, "the first is a minute old"
    assert windows.hit("a", 3) == 20


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=60))
def test_windows_count_like_a_list_of_all_hits(steps: list[tuple[str, int]]) -> None:
    clock, windows, limit = Clock(), Windows(), 3
    taken: list[tuple[str, float]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows_module, "time", clock)
        for key, seconds in steps:
            clock.now += seconds
            recent = [at for of, at in taken if of == key and at > clock.now - MINUTE]
            expected = len(recent) < limit
            assert (windows.hit(key, limit) == 0) is expected
            if expected:
                taken.append((key, clock.now))
