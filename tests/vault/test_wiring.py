"""The vault's subscriptions: changes of other processes, new tenants; and audit's port."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from mcphost.feed.loop import loop
from mcphost.feed.services import announce
from mcphost.tenants.models import Tenant
from mcphost.tenants.signals import tenant_created
from mcphost.vault import selectors
from mcphost.vault.errors import NoActiveKeyError
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.services import ensure_tenant
from mcphost.vault.states import KeyState

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def warm() -> UUID:
    """A tenant whose keys are in memory, with the change log read up to its end."""
    tenant = uuid4()
    ensure_tenant(tenant)
    assert loop.poll()
    selectors.ring()
    selectors.secrets(tenant)
    return tenant


def tell(name: str = "key", **columns: Any) -> None:
    with transaction.atomic():
        announce(name, **columns)
    assert loop.poll()


def test_a_change_by_another_process_invalidates_only_its_own_cache_entry(
    warm, django_assert_num_queries
):
    tell(tenant=uuid4())
    with django_assert_num_queries(0):
        assert selectors.is_warm(warm)
    TenantSecret.objects.update(wrapped_salt="")
    assert selectors.salt(warm)
    tell(tenant=warm)
    assert selectors.salt(warm) == b""
    RingKey.objects.update(state=KeyState.RETIRING)
    assert selectors.ring().active.id
    tell()
    with pytest.raises(NoActiveKeyError):
        selectors.ring()


def test_after_a_gap_in_the_change_log_everything_is_read_again(warm: UUID) -> None:
    loop._notify(loop._gap_callbacks)
    assert not selectors.is_warm(warm)


def test_a_new_tenant_gets_its_secrets_at_once() -> None:
    tenant = uuid4()
    tenant_created.send(sender=Tenant, tenant_id=tenant)
    assert TenantSecret.objects.filter(tenant=tenant).exists()
