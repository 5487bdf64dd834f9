"""Moving windows in memory."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.serving import limits as windows_module
from mcphost.serving.limits import Windows
from tests.plugins.costs import CompareCpu
from tests.work import Work

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


def test_so_many_are_counted_within_any_minute_and_no_more(clock: Clock) -> None:
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


def test_keys_are_forgotten_that_were_not_counted_for_a_minute(clock: Clock) -> None:
    windows = Windows()
    for number in range(100):
        windows.hit(f"{number}", 1)
    clock.now += MINUTE
    for number in range(50):
        windows.hit(f"new {number}", 1)
    assert len(windows) == 50


def hit_all(windows: Windows, keys: int) -> None:
    for number in range(keys):
        windows.hit(f"{number}", 1000)


def test_a_hit_costs_the_same_however_many_keys_there_are() -> None:
    def steps_of(keys: int) -> int:
        windows = Windows()
        hit_all(windows, keys)
        with Work() as work:
            hit_all(windows, 200)
        return work.steps

    assert steps_of(20_000) == steps_of(200)


@pytest.mark.cost
def test_a_hit_takes_no_longer_however_many_keys_there_are(compare_cpu: CompareCpu) -> None:
    """A dict would look through all entries deleted before its first key, inside of one call."""

    def hits(keys: int) -> Callable[[], None]:
        windows = Windows()

        def act() -> None:
            hit_all(windows, keys)

        act()
        return act

    compare_cpu("hits", hits(100_000), hits(200), 5 * 500)  # 500 times as many


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), max_size=60))
def test_it_counts_as_a_list_of_all_hits_does(steps: list[tuple[str, int]]) -> None:
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
