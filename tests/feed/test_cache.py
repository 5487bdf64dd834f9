"""The cache of database values: what it stores, evicts and forgets."""

import pytest
from django.db import transaction

from mcphost.feed.cache import MISS, Cache


def _full(limit: int, *keys: str) -> Cache[str, int]:
    cache: Cache[str, int] = Cache(limit)
    for number, key in enumerate(keys):
        cache.put(key, number, cache.mark())
    return cache


def test_a_stored_value_is_returned_and_an_unknown_key_is_a_miss() -> None:
    cache = _full(2, "a")
    assert cache.get("a") == 0
    assert cache.get("b") is MISS
    nothing: Cache[str, None] = Cache(1)
    nothing.put("a", None, nothing.mark())
    assert nothing.get("a") is None


def test_a_full_cache_evicts_the_oldest_value() -> None:
    cache = _full(2, "a", "b", "c")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (MISS, 1, 2)
    assert len(cache) == 2
    again = _full(2, "a", "b", "a", "c")  # putting again makes it the newest
    assert (again.get("a"), again.get("b"), again.get("c")) == (2, MISS, 3)


def test_forgetting_by_key_or_by_predicate_keeps_other_values() -> None:
    cache = _full(5, "a", "b", "c", "d")
    cache.forget("a")
    cache.forget("unknown")
    cache.forget_where(lambda value: value > 2)
    assert [cache.get(key) for key in "abcd"] == [MISS, 1, 2, MISS]
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize("change", ["forget", "forget_where", "clear"])
def test_a_value_read_before_a_change_is_not_cached_after_it(change: str) -> None:
    cache = _full(3)
    mark = cache.mark()
    match change:
        case "forget":
            cache.forget("a")
        case "forget_where":
            cache.forget_where(lambda value: False)
        case _:
            cache.clear()
    cache.put("a", 1, mark)
    assert cache.get("a") is MISS


@pytest.mark.django_db(transaction=True)
def test_a_value_read_inside_a_transaction_is_not_cached() -> None:
    cache = _full(3)
    with transaction.atomic():
        cache.put("a", 1, cache.mark())
    assert cache.get("a") is MISS


def test_a_reader_that_sees_the_new_mark_gets_no_old_value() -> None:
    """Values derived from a cached one are valid until the mark changes (see `_marks` in
    `transport.authentication`)."""
    cache = _full(2, "a")
    before = cache.mark()
    seen = []

    def while_forgetting(value: int) -> bool:
        seen.append((cache.mark(), cache.get("a")))
        return True

    cache.forget_where(while_forgetting)
    assert seen == [(before, 0)]
    assert (cache.mark(), cache.get("a")) == (before + 1, MISS)


def test_the_mark_changes_after_a_single_value_is_removed() -> None:
    marks = []

    class Key:
        """Notes the cache's mark while the cache looks the key up."""

        def __hash__(self) -> int:
            marks.append(cache.mark())
            return 1

    cache: Cache[Key, int] = Cache(2)
    key = Key()
    cache.put(key, 1, cache.mark())
    marks.clear()
    cache.forget(key)
    assert marks
    assert set(marks) == {0}
    assert cache.mark() == 1
