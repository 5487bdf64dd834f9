"""Tests of the store of a tenant's tools: whole values, revisions, isolation of tenants."""

from itertools import count
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from mcphost.catalogue.models import StoredValue
from mcphost.catalogue.store import MAX_BYTES, NOTHING, StoreOwner, delete, get, put
from mcphost.runtime.ports import Stored, StoreRefusedError
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Role
from mcphost.tenants.services import remove_member, set_member
from tests.cast import ACTOR
from tests.catalogue.test_races import PEOPLE, at_once

pytestmark = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


def member_of(tenant: UUID, name: str) -> Membership:
    user = User.objects.create_user(name)
    set_member(tenant, user, Role.MEMBER, actor=ACTOR)
    return Membership.objects.get(tenant_id=tenant, user=user)


@pytest.mark.parametrize(
    "value", [None, "nul \0, snowman ☃", 2**80, [], {"b": [{"a": None}], "a": True}]
)
def test_a_stored_value_is_read_unchanged_with_the_next_revision(acme: UUID, value: Any) -> None:
    assert put(StoreOwner(acme), "a", value, 0)
    kept, revision = get(StoreOwner(acme), "a")
    assert (kept, revision > 0) == (value, True)
    assert put(StoreOwner(acme), "a", [value], revision)
    assert get(StoreOwner(acme), "a") == Stored([value], revision + 1)


@pytest.mark.parametrize("revision", [0, 2**70])
def test_a_write_based_on_a_wrong_revision_changes_nothing(acme: UUID, revision: int) -> None:
    put(StoreOwner(acme), "a", "first", 0)
    before = get(StoreOwner(acme), "a")
    assert not put(StoreOwner(acme), "a", "second", revision)
    assert not delete(StoreOwner(acme), "a", revision)
    assert get(StoreOwner(acme), "a") == before
    assert before.value == "first"


def test_a_missing_key_is_written_and_deleted_only_with_revision_zero(acme: UUID) -> None:
    assert get(StoreOwner(acme), "a") == NOTHING == Stored(None, 0)
    assert not put(StoreOwner(acme), "a", "second", 1)
    assert not delete(StoreOwner(acme), "a", 1)
    assert delete(StoreOwner(acme), "a", 0)
    assert get(StoreOwner(acme), "a") == NOTHING


@committed
def test_one_of_several_concurrent_creations_or_deletions_of_a_key_succeeds(acme: UUID) -> None:
    one = [False] * (PEOPLE - 1) + [True]
    assert sorted(at_once(lambda: put(StoreOwner(acme), "a", "mine", 0))) == one
    value, revision = get(StoreOwner(acme), "a")
    assert value == "mine"
    assert sorted(at_once(lambda: delete(StoreOwner(acme), "a", revision))) == one


@committed
def test_concurrent_increments_with_retries_lose_no_update(acme: UUID) -> None:
    put(StoreOwner(acme), "count", 0, 0)
    first = get(StoreOwner(acme), "count").revision

    def count() -> int:
        tries = 1
        while not put(
            StoreOwner(acme),
            "count",
            (seen := get(StoreOwner(acme), "count")).value + 1,
            seen.revision,
        ):
            tries += 1
        return tries

    assert min(at_once(count)) == 1
    assert get(StoreOwner(acme), "count") == Stored(PEOPLE, first + PEOPLE)


def test_another_tenant_can_neither_read_nor_change_a_stored_value(
    acme: UUID, globex: UUID
) -> None:
    put(StoreOwner(acme), "a", "acme's", 0)
    kept = get(StoreOwner(acme), "a")
    assert get(StoreOwner(globex), "a") == NOTHING
    assert not put(StoreOwner(globex), "a", "globex's", kept.revision)
    assert not delete(StoreOwner(globex), "a", kept.revision)
    assert put(StoreOwner(globex), "a", "globex's", 0)
    assert get(StoreOwner(acme), "a") == kept


def test_the_number_of_keys_is_limited_per_tenant(acme, globex, settings):
    settings.MCPHOST_STORE_KEYS = 2
    assert put(StoreOwner(acme), "a", 1, 0)
    assert put(StoreOwner(acme), "b", 1, 0)
    with pytest.raises(StoreRefusedError, match="at most 2 values"):
        put(StoreOwner(acme), "c", 1, 0)
    assert put(StoreOwner(acme), "b", 2, get(StoreOwner(acme), "b").revision)
    assert not put(StoreOwner(acme), "b", 3, 0)
    assert put(StoreOwner(globex), "c", 1, 0)


def test_each_person_has_so_many_keys_beside_those_of_the_tenant(acme, settings):
    settings.MCPHOST_USER_STORE_KEYS = 1
    ada, bob = (StoreOwner(acme, member_of(acme, name).pk) for name in ("ada", "bob"))
    assert all(put(owner, "a", 1, 0) for owner in (ada, bob, StoreOwner(acme)))
    with pytest.raises(StoreRefusedError, match="The user's store is full: it may have at most 1"):
        put(ada, "b", 1, 0)
    assert put(StoreOwner(acme), "b", 1, 0)
    assert not put(ada, "a", 2, 0)


def test_a_member_of_another_tenant_stores_nothing(acme: UUID, globex: UUID) -> None:
    foreign = StoreOwner(globex, member_of(acme, "ada").pk)
    with pytest.raises(StoreRefusedError, match="no longer a member"):
        put(foreign, "a", 1, 0)
    assert get(foreign, "a") == NOTHING


@committed
def test_a_removed_member_leaves_no_value_however_many_write_meanwhile(acme: UUID) -> None:
    member = member_of(acme, "ada")
    owner, turns = StoreOwner(acme, member.pk), count()

    def remove_or_write() -> bool:
        if (turn := next(turns)) == PEOPLE // 2:
            return remove_member(acme, member.user, actor=ACTOR)
        try:
            return put(owner, str(turn), 1, 0)
        except StoreRefusedError:
            return True

    assert at_once(remove_or_write) == [True] * PEOPLE
    assert not StoredValue.objects.filter(tenant=acme).exists()


@pytest.mark.parametrize("key", ["", "a" * 201, "a\0b", "\ud800"])
def test_an_invalid_key_is_refused(acme: UUID, key: str) -> None:
    for use in (get, lambda *at: put(*at, 1, 0), lambda *at: delete(*at, 1)):
        with pytest.raises(StoreRefusedError, match="1 to 200 printable"):
            use(StoreOwner(acme), key)


def test_only_json_values_are_stored(acme: UUID) -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in ({1, 2}, object(), float("nan"), b"", "\ud800", endless):
        with pytest.raises(StoreRefusedError, match="Only JSON"):
            put(StoreOwner(acme), "a", value, 0)


def test_values_have_a_maximum_size_and_any_printable_text_is_a_key(acme: UUID) -> None:
    for key in ("a" * 200, "work items/4522 ☃"):
        assert put(StoreOwner(acme), key, "x" * (MAX_BYTES - 2), 0)
        assert len(get(StoreOwner(acme), key).value) == MAX_BYTES - 2
    with pytest.raises(StoreRefusedError, match="at most 65536 bytes; this has 65537"):
        put(StoreOwner(acme), "b", "x" * (MAX_BYTES - 1), 0)
