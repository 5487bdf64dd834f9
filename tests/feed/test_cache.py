"""The cache of database values: what it stores, evicts and forgets."""

import pytest
from django.db import transaction

from mcphost.feed.cache import MISS, Cache


@pytest.fixture(autouse=True)
def _database(transactional_db: None) -> None:
    """`put` asks the connection whether it is inside a transaction."""


def _full(limit: int, *keys: str) -> Cache[str, int]:
    cache: Cache[str, int] = Cache(limit)
    for number, key in enumerate(keys):
        cache.put(key, number, cache.mark())
    return cache


def test_what_was_put_is_found_and_the_rest_is_a_miss() -> None:
    cache = _full(2, "a")
    assert cache.get("a") == 0
    assert cache.get("b") is MISS


def test_none_is_something_that_can_be_known() -> None:
    cache: Cache[str, None] = Cache(1)
    cache.put("a", None, cache.mark())
    assert cache.get("a") is None


def test_a_full_cache_lets_go_of_what_was_put_first() -> None:
    cache = _full(2, "a", "b", "c")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (MISS, 1, 2)
    assert len(cache) == 2


def test_putting_again_pushes_nothing_out_and_makes_it_the_newest() -> None:
    cache = _full(2, "a", "b", "a", "c")
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (2, MISS, 3)


def test_forgetting_one_leaves_the_others() -> None:
    cache = _full(3, "a", "b")
    cache.forget("a")
    cache.forget("unknown")
    assert (cache.get("a"), cache.get("b")) == (MISS, 1)


def test_forgetting_by_a_test_on_the_values_leaves_the_others() -> None:
    cache = _full(3, "a", "b", "c")
    cache.forget_where(lambda value: value != 1)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (MISS, 1, MISS)


def test_clearing_forgets_everything() -> None:
    cache = _full(3, "a", "b")
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize("change", ["forget", "forget_where", "clear"])
def test_a_value_read_before_a_change_is_not_kept_after_it(change: str) -> None:
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


def test_a_value_read_inside_a_transaction_is_not_kept_for_it_may_be_rolled_back() -> None:
    cache = _full(3)
    with transaction.atomic():
        cache.put("a", 1, cache.mark())
    assert cache.get("a") is MISS


def test_whoever_sees_the_new_mark_gets_no_old_value() -> None:
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


def test_the_mark_moves_after_a_single_value_is_gone() -> None:
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
