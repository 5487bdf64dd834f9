"""Tests of the store of a tenant's tools: whole values, revisions, isolation of tenants."""

from typing import Any
from uuid import UUID

import pytest

from mcphost.catalogue.store import MAX_BYTES, NOTHING, delete, get, put
from mcphost.runtime.ports import Stored, StoreRefusedError
from tests.catalogue.test_races import PEOPLE, at_once

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "value", [None, "nul \0, snowman ☃", 2**80, [], {"b": [{"a": None}], "a": True}]
)
def test_a_stored_value_is_read_unchanged_with_the_next_revision(acme: UUID, value: Any) -> None:
    assert put(acme, "a", value, 0)
    kept, revision = get(acme, "a")
    assert (kept, revision > 0) == (value, True)
    assert put(acme, "a", [value], revision)
    assert get(acme, "a") == Stored([value], revision + 1)


@pytest.mark.parametrize("revision", [0, 2**70])
def test_a_write_based_on_a_wrong_revision_changes_nothing(acme: UUID, revision: int) -> None:
    put(acme, "a", "first", 0)
    before = get(acme, "a")
    assert not put(acme, "a", "second", revision)
    assert not delete(acme, "a", revision)
    assert get(acme, "a") == before
    assert before.value == "first"


def test_a_missing_key_is_written_and_deleted_only_with_revision_zero(acme: UUID) -> None:
    assert get(acme, "a") == NOTHING == Stored(None, 0)
    assert not put(acme, "a", "second", 1)
    assert not delete(acme, "a", 1)
    assert delete(acme, "a", 0)
    assert get(acme, "a") == NOTHING


@committed
def test_one_of_several_concurrent_creations_or_deletions_of_a_key_succeeds(acme: UUID) -> None:
    one = [False] * (PEOPLE - 1) + [True]
    assert sorted(at_once(lambda: put(acme, "a", "mine", 0))) == one
    value, revision = get(acme, "a")
    assert value == "mine"
    assert sorted(at_once(lambda: delete(acme, "a", revision))) == one


@committed
def test_concurrent_increments_with_retries_lose_no_update(acme: UUID) -> None:
    put(acme, "count", 0, 0)
    first = get(acme, "count").revision

    def count() -> int:
        tries = 1
        while not put(acme, "count", (seen := get(acme, "count")).value + 1, seen.revision):
            tries += 1
        return tries

    assert min(at_once(count)) == 1
    assert get(acme, "count") == Stored(PEOPLE, first + PEOPLE)


def test_another_tenant_can_neither_read_nor_change_a_stored_value(
    acme: UUID, globex: UUID
) -> None:
    put(acme, "a", "acme's", 0)
    kept = get(acme, "a")
    assert get(globex, "a") == NOTHING
    assert not put(globex, "a", "globex's", kept.revision)
    assert not delete(globex, "a", kept.revision)
    assert put(globex, "a", "globex's", 0)
    assert get(acme, "a") == kept


def test_the_number_of_keys_is_limited_per_tenant(acme, globex, settings):
    settings.MCPHOST_STORE_KEYS = 2
    assert put(acme, "a", 1, 0)
    assert put(acme, "b", 1, 0)
    with pytest.raises(StoreRefusedError, match="at most 2 values"):
        put(acme, "c", 1, 0)
    assert put(acme, "b", 2, get(acme, "b").revision)
    assert not put(acme, "b", 3, 0)
    assert put(globex, "c", 1, 0)


@pytest.mark.parametrize("key", ["", "a" * 201, "a\0b", "\ud800"])
def test_an_invalid_key_is_refused(acme: UUID, key: str) -> None:
    for use in (get, lambda *at: put(*at, 1, 0), lambda *at: delete(*at, 1)):
        with pytest.raises(StoreRefusedError, match="1 to 200 printable"):
            use(acme, key)


def test_only_json_values_are_stored(acme: UUID) -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in ({1, 2}, object(), float("nan"), b"", "\ud800", endless):
        with pytest.raises(StoreRefusedError, match="Only JSON"):
            put(acme, "a", value, 0)


def test_values_have_a_maximum_size_and_any_printable_text_is_a_key(acme: UUID) -> None:
    for key in ("a" * 200, "work items/4522 ☃"):
        assert put(acme, key, "x" * (MAX_BYTES - 2), 0)
        assert len(get(acme, key).value) == MAX_BYTES - 2
    with pytest.raises(StoreRefusedError, match="at most 65536 bytes; this has 65537"):
        put(acme, "b", "x" * (MAX_BYTES - 1), 0)
