from uuid import uuid4

import pytest
from django.db import transaction

from mcphost.vault import selectors
from mcphost.vault.errors import DamagedSecretError, NoActiveKeyError, NoSecretsError
from mcphost.vault.models import TenantSecret
from mcphost.vault.services import ensure_ring, ensure_tenant
from mcphost.vault.states import KeyState
from tests.vault.rings import add_key

pytestmark = pytest.mark.django_db


def test_the_ring_seals_with_the_active_key_and_opens_with_standby_and_retiring_keys() -> None:
    active = ensure_ring()
    for state in set(KeyState) - {KeyState.ACTIVE}:
        add_key(state.value, state)
    ring = selectors.ring()
    assert ring.active.id == active
    assert set(ring.opening) == {active, "standby", "retiring"}


@pytest.mark.parametrize("state", sorted(set(KeyState) - {KeyState.ACTIVE}))
def test_a_ring_without_an_active_key_names_the_command_that_helps(state: KeyState) -> None:
    add_key("k1", state)
    with pytest.raises(NoActiveKeyError, match=r"manage\.py init"):
        selectors.ring()


@pytest.mark.django_db(transaction=True)
def test_a_key_of_a_rolled_back_transaction_is_not_cached() -> None:
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
def test_a_secret_copied_from_another_tenants_row_or_column_does_not_open(name: str) -> None:
    victim, thief = uuid4(), uuid4()
    ensure_tenant(victim)
    ensure_tenant(thief)
    own, theirs = (TenantSecret.objects.get(tenant=tenant) for tenant in (thief, victim))
    other = "wrapped_salt" if name == "wrapped_payload_key" else "wrapped_payload_key"
    for value in (getattr(theirs, name), getattr(own, other)):
        TenantSecret.objects.filter(tenant=thief).update(**{name: value})
        selectors.forget_everything()
        with pytest.raises(DamagedSecretError, match=str(thief)):
            selectors.secrets(thief)
