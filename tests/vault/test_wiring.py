"""The vault's subscriptions: changes of other processes, new tenants; and audit's port."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.feed.loop import loop
from mcphost.feed.services import announce
from mcphost.tenants.models import Tenant
from mcphost.tenants.signals import tenant_created
from mcphost.vault import selectors, wiring
from mcphost.vault.errors import NoActiveKeyError
from mcphost.vault.master import master_key
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.payloads import VaultPayloadCipher
from mcphost.vault.rewrapping import NEWS
from mcphost.vault.services import ensure_tenant
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import kek_id

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


def test_what_was_changed_elsewhere_is_noticed_and_the_rest_stays(warm, django_assert_num_queries):
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


def test_after_a_gap_in_the_feed_everything_is_read_again(warm: UUID) -> None:
    loop._tell(loop._gap_callbacks)
    assert not selectors.is_warm(warm)


def test_a_new_tenant_gets_its_secrets_at_once() -> None:
    tenant = uuid4()
    tenant_created.send(sender=Tenant, tenant_id=tenant)
    assert TenantSecret.objects.filter(tenant=tenant).exists()


def test_a_process_left_without_the_master_key_says_so_and_keeps_what_it_knows(warm, caplog):
    tell(NEWS, object_id=f"abcdef012345 {kek_id(master_key())}")
    assert not caplog.messages
    tell(NEWS, object_id="abcdef012345")
    assert any("abcdef012345" in each and "restart" in each for each in caplog.messages)
    assert selectors.is_warm(warm)


def test_audits_port_is_filled() -> None:
    set_payload_cipher(None)
    wiring.fill_ports()
    assert isinstance(payload_cipher(), VaultPayloadCipher)
