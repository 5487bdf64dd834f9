"""Tests of the cache that loads missing values, with one thread and with many."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.catalogue.cache import FilledCache
from mcphost.feed.cache import MISS

SECONDS = 20


class Source:
    """The source of a cache: counts loads, and can block them at a gate."""

    def __init__(self) -> None:
        self.loads: list[Hashable] = []
        self.value = 0
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def load(self, key: Hashable) -> tuple[Hashable, int]:
        value = self.value
        self.loads.append(key)
        self.entered.release()
        assert self.gate.wait(SECONDS)
        return key, value


def test_get_loads_a_value_once_and_peek_never_loads() -> None:
    source = Source()
    cache = FilledCache(source.load, 10)
    assert cache.peek("a") is MISS
    assert cache.get("a") == cache.get("a") == ("a", 0)
    assert cache.peek("a") == ("a", 0)
    assert source.loads == ["a"]
    nothing: FilledCache[str, None] = FilledCache(lambda _: None, 10)
    nothing.get("a")
    assert nothing.peek("a") is None


def test_a_burst_of_misses_loads_once() -> None:
    source = Source()
    source.gate.clear()
    cache = FilledCache(source.load, 10)
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(cache.get, "a") for _ in range(8)]
        assert source.entered.acquire(timeout=SECONDS)
        source.gate.set()
        assert {future.result(SECONDS) for future in futures} == {("a", 0)}
    assert source.loads == ["a"]


@pytest.mark.parametrize("drop", ["drop", "clear"])
def test_a_value_dropped_while_it_loads_is_not_cached(drop: str) -> None:
    source = Source()
    source.gate.clear()
    cache = FilledCache(source.load, 10)
    forget: Callable[[], None] = cache.clear if drop == "clear" else lambda: cache.drop("a")
    with ThreadPoolExecutor(2) as pool:
        before = pool.submit(cache.get, "a")
        assert source.entered.acquire(timeout=SECONDS)
        source.value = 1
        forget()
        after = pool.submit(cache.get, "a")
        assert source.entered.acquire(timeout=SECONDS), "who asks after the drop loads anew"
        source.gate.set()
        assert before.result(SECONDS) == ("a", 0)
        assert after.result(SECONDS) == ("a", 1)
    assert cache.peek("a") == ("a", 1)


@pytest.mark.parametrize("drop", ["drop", "clear"])
def test_a_load_that_ends_after_a_drop_caches_nothing(drop: str) -> None:
    source = Source()
    source.gate.clear()
    cache = FilledCache(source.load, 10)
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(cache.get, "a")
        assert source.entered.acquire(timeout=SECONDS)
        cache.clear() if drop == "clear" else cache.drop("a")
        source.gate.set()
        assert before.result(SECONDS) == ("a", 0)
    assert cache.peek("a") is MISS


def test_a_failed_load_raises_in_every_waiting_thread_and_is_not_cached() -> None:
    source = Source()
    source.gate.clear()

    def fail(key: str) -> str:
        source.load(key)
        raise LookupError(key)

    cache = FilledCache(fail, 10)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(cache.get, "a") for _ in range(3)]
        assert source.entered.acquire(timeout=SECONDS)
        source.gate.set()
        for future in futures:
            with pytest.raises(LookupError):
                future.result(SECONDS)
    assert cache.peek("a") is MISS


operations = st.lists(
    st.tuples(st.sampled_from(["get", "drop", "clear", "change"]), st.integers(0, 5)), max_size=60
)


@given(operations=operations, size=st.integers(1, 4))
def test_the_cache_never_returns_a_dropped_value_and_stays_within_its_size(operations, size):
    truth = dict.fromkeys(range(6), 0)
    cache = FilledCache(truth.__getitem__, size)
    for verb, key in operations:
        match verb:
            case "get":
                assert cache.get(key) == truth[key]
            case "drop":
                cache.drop(key)
            case "clear":
                cache.clear()
            case _:
                truth[key] += 1
                cache.drop(key)
        assert len(cache) <= size
