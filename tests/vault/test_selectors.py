from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from mcphost.vault import selectors
from mcphost.vault.errors import DamagedSecretError, NoActiveKeyError, NoSecretsError
from mcphost.vault.master import master_key
from mcphost.vault.models import RingKey, TenantSecret, place
from mcphost.vault.services import ensure_ring, ensure_tenant
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import wrap

pytestmark = pytest.mark.django_db


def add_key(key_id: str, state: KeyState) -> None:
    now = timezone.now()
    row = RingKey(id=key_id, state=state, created_at=now, state_since=now)
    row.wrapped = wrap(bytes(32), place(row, "wrapped"), master_key(), bytes(12))
    row.save()


def test_the_ring_seals_with_the_active_key_and_opens_with_those_that_may() -> None:
    active = ensure_ring()
    for state in set(KeyState) - {KeyState.ACTIVE}:
        add_key(state.value, state)
    ring = selectors.ring()
    assert ring.active.id == active
    assert set(ring.opening) == {active, "standby", "retiring"}


@pytest.mark.parametrize("state", sorted(set(KeyState) - {KeyState.ACTIVE}))
def test_a_ring_without_an_active_key_says_what_would_help(state: KeyState) -> None:
    add_key("k1", state)
    with pytest.raises(NoActiveKeyError, match=r"manage\.py init"):
        selectors.ring()


def test_a_tenant_without_secrets_is_named() -> None:
    tenant = uuid4()
    with pytest.raises(NoSecretsError, match=str(tenant)):
        selectors.secrets(tenant)


def test_salt_and_payload_key_are_parts_of_the_secrets() -> None:
    tenant = uuid4()
    made = ensure_tenant(tenant)
    assert selectors.salt(tenant) == made.salt
    assert selectors.payload_key(tenant) == made.payload_key


@pytest.mark.django_db(transaction=True)
def test_what_was_read_once_is_not_read_again(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    tenant = uuid4()
    ensure_tenant(tenant)
    selectors.forget_everything()
    assert not selectors.is_warm(tenant)
    with django_assert_num_queries(2):
        selectors.ring()
        selectors.secrets(tenant)
    assert selectors.is_warm(tenant)
    with django_assert_num_queries(0):
        selectors.ring()
        selectors.salt(tenant)
        selectors.payload_key(tenant)


@pytest.mark.django_db(transaction=True)
def test_what_is_forgotten_is_read_again_and_the_rest_is_kept(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    first, second = uuid4(), uuid4()
    for tenant in (first, second):
        ensure_tenant(tenant)
        selectors.secrets(tenant)
    selectors.ring()
    selectors.forget_tenant(first)
    with django_assert_num_queries(0):
        selectors.secrets(second)
        selectors.ring()
    with django_assert_num_queries(1):
        selectors.secrets(first)
    selectors.forget_ring()
    with django_assert_num_queries(1):
        selectors.ring()


@pytest.mark.django_db(transaction=True)
def test_a_key_whose_transaction_was_undone_is_not_remembered() -> None:
    tenant = uuid4()
    with transaction.atomic():
        ensure_tenant(tenant)
        selectors.ring()
        transaction.set_rollback(True)
    assert not selectors.is_warm(tenant)
    with pytest.raises(NoActiveKeyError):
        selectors.ring()
    with pytest.raises(NoSecretsError):
        selectors.secrets(tenant)


@pytest.mark.parametrize("name", ["wrapped_salt", "wrapped_payload_key"])
def test_a_secret_copied_from_another_tenants_row_does_not_open(name: str) -> None:
    victim, thief = uuid4(), uuid4()
    ensure_tenant(victim)
    ensure_tenant(thief)
    selectors.forget_everything()
    theirs = getattr(TenantSecret.objects.get(tenant=victim), name)
    TenantSecret.objects.filter(tenant=thief).update(**{name: theirs})
    with pytest.raises(DamagedSecretError, match=str(thief)):
        selectors.secrets(thief)


def test_a_secret_moved_to_another_column_does_not_open() -> None:
    tenant = uuid4()
    ensure_tenant(tenant)
    selectors.forget_everything()
    row = TenantSecret.objects.get()
    row.wrapped_salt, row.wrapped_payload_key = row.wrapped_payload_key, row.wrapped_salt
    row.save()
    with pytest.raises(DamagedSecretError):
        selectors.secrets(tenant)


def test_secrets_do_not_show_in_the_text_of_what_holds_them() -> None:
    made = ensure_tenant(uuid4())
    shown = repr(made)
    assert repr(made.salt) not in shown
    assert repr(made.payload_key.secret) not in shown
