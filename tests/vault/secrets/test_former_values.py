"""Values that a secret had: masked in responses for a day, used for nothing else, then erased."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from mcphost.feed.cache import MISS
from mcphost.feed.loop import loop
from mcphost.feed.models import Change
from mcphost.serving.tasks import upkeep
from mcphost.tenants.errors import InvalidError
from mcphost.vault import selectors as keys
from mcphost.vault.lifecycle import destroy_salt
from mcphost.vault.models import FormerValue, StoredSecret, TenantSecret
from mcphost.vault.secrets import selectors, services
from mcphost.vault.secrets.selectors import (
    cached_secret,
    forget_everything,
    load_secret,
    load_values_to_mask,
    tenant_secrets,
)
from mcphost.vault.secrets.services import (
    change_secret,
    create_secret,
    delete_secret,
    prune_former_values,
    rotate_secret,
)
from mcphost.vault.services import ensure_ring, ensure_tenant
from tests.cast import Cast
from tests.vault.secrets.tenant_secret import NAME, OLGA, OTHER, VALUE, stored

pytestmark = pytest.mark.django_db(transaction=True)

CountQueries = Callable[[int], AbstractContextManager[Any]]
RULES = {"hosts": ["api.example.com"], "places": ["header"]}
CHANGES: dict[str, tuple[Callable[[UUID, UUID], object], set[str]]] = {
    "rotated": (lambda tenant, row: rotate_secret(tenant, row, OTHER, actor=OLGA), {VALUE, OTHER}),
    "widened, which replaces it": (
        lambda tenant, row: change_secret(
            tenant, row, hosts=["b.example.com"], places=["body"], value=OTHER, actor=OLGA
        ),
        {VALUE, OTHER},
    ),
    "narrowed": (lambda tenant, row: change_secret(tenant, row, **RULES, actor=OLGA), {VALUE}),
    "deleted": (lambda tenant, row: delete_secret(tenant, row, actor=OLGA), {VALUE}),
    "rotated and deleted": (
        lambda tenant, row: (
            rotate_secret(tenant, row, OTHER, actor=OLGA),
            delete_secret(tenant, row, actor=OLGA),
        ),
        {VALUE, OTHER},
    ),
    "deleted and stored anew": (
        lambda tenant, row: (delete_secret(tenant, row, actor=OLGA), stored(tenant, value=OTHER)),
        {VALUE, OTHER},
    ),
}


@pytest.fixture
def acme(cast: Cast) -> UUID:
    return cast.acme.id


def masked(tenant: UUID) -> set[str]:
    loop.poll()
    return set(load_values_to_mask(tenant))


@pytest.mark.parametrize("change", CHANGES)
def test_former_values_are_masked_after_every_kind_of_change(change, acme, cast, elsewhere):
    """Here, and in another process that learns of it by the change log."""
    act, values = CHANGES[change]
    secret = stored(acme, hosts=["api.example.com", "other.example.com"], places=["header", "body"])
    assert masked(acme) == {VALUE}
    with elsewhere():
        act(acme, secret)
    assert masked(acme) == values
    assert masked(cast.globex.id) == set()


def test_a_former_value_is_used_only_for_masking(acme: UUID) -> None:
    secret = stored(acme)
    rotate_secret(acme, secret, OTHER, actor=OLGA)
    assert load_secret(acme, NAME).reveal() == OTHER
    (row,) = tenant_secrets(acme)
    assert row.version == 2
    delete_secret(acme, secret, actor=OLGA)
    loop.poll()
    assert load_secret(acme, NAME) is None
    assert cached_secret(acme, NAME) is None
    assert tenant_secrets(acme) == ()
    create_secret(acme, NAME, VALUE, **RULES, actor=OLGA)


def test_a_former_value_stays_encrypted_in_database_and_cache(acme: UUID) -> None:
    secret = stored(acme)
    sealed = bytes(StoredSecret.objects.get().sealed)
    rotate_secret(acme, secret, OTHER, actor=OLGA)
    row = FormerValue.objects.get()
    assert (bytes(row.sealed), row.tenant, row.secret, row.version) == (sealed, acme, secret, 1)
    load_values_to_mask(acme)
    known = selectors._cache.get(acme)
    assert known is not MISS
    assert known.former[0].sealed == sealed
    assert known.secrets[NAME].sealed == bytes(StoredSecret.objects.get().sealed)
    for secret_text in (VALUE, OTHER, repr(sealed), repr(known.secrets[NAME].sealed)):
        assert secret_text not in repr(known)


def test_former_values_are_erased_after_a_day_and_every_process_drops_them(acme: UUID) -> None:
    secret = stored(acme)
    rotate_secret(acme, secret, OTHER, actor=OLGA)
    begun = FormerValue.objects.get().expires_at
    assert timedelta(hours=23, minutes=59) < begun - timezone.now() <= timedelta(days=1)
    assert prune_former_values() == 0
    assert masked(acme) == {VALUE, OTHER}
    FormerValue.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    changes = Change.objects.count()
    assert upkeep.run(upkeep.CHORES) == ""
    assert not FormerValue.objects.exists()
    assert Change.objects.count() > changes
    assert masked(acme) == {OTHER}


def test_the_number_of_values_per_tenant_is_limited_and_deletion_is_always_possible(
    acme, cast, monkeypatch
):
    """No value is forgotten to make room: a user who rotates often would see older ones."""
    monkeypatch.setattr(services, "MAX_VALUES", 3)
    secret = stored(acme)
    rotate_secret(acme, secret, OTHER, actor=OLGA)
    stored(acme, "other_key", "elsewhere-value", hosts=["elsewhere.example"])
    assert masked(acme) == {VALUE, OTHER, "elsewhere-value"}, "whatever hosts they have"
    for refused, field in (
        (lambda: rotate_secret(acme, secret, "a-fourth-value", actor=OLGA), "value"),
        (lambda: change_secret(acme, secret, **RULES, value="a-fourth-value", actor=OLGA), "value"),
        (lambda: stored(acme, "third_key"), "name"),
    ):
        with pytest.raises(InvalidError, match="at most 3 values") as caught:
            refused()
        assert list(caught.value.problems) == [field]
    stored(cast.globex.id)
    assert delete_secret(acme, secret, actor=OLGA)
    with pytest.raises(InvalidError):
        stored(acme, "third_key")
    FormerValue.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    prune_former_values()
    stored(acme, "third_key")


def test_former_values_cannot_be_opened_without_the_tenants_payload_key(acme: UUID) -> None:
    rotate_secret(acme, stored(acme), OTHER, actor=OLGA)
    destroy_salt(acme, OLGA)
    assert masked(acme) == {VALUE, OTHER}
    StoredSecret.objects.all().delete()
    TenantSecret.objects.filter(tenant=acme).delete()
    ensure_ring()
    keys.forget_everything()
    forget_everything()
    ensure_tenant(acme)
    assert masked(acme) == set()
