"""What the vault listens to and fills in, connected once at start-up."""

from typing import Any
from uuid import UUID

from mcphost.audit.ports import set_payload_cipher
from mcphost.feed.loop import ChangeNews, loop
from mcphost.tenants.signals import tenant_created
from mcphost.vault import selectors
from mcphost.vault.payloads import VaultPayloadCipher
from mcphost.vault.services import ensure_tenant


def forget(news: ChangeNews) -> None:
    """Drop what changed: one tenant's secrets, or the ring."""
    if news.tenant is None:
        selectors.forget_ring()
    else:
        selectors.forget_tenant(news.tenant)


def equip(sender: Any, tenant_id: UUID, **kwargs: Any) -> None:
    """Make a new tenant's secrets. Should it fail, their first use makes them."""
    ensure_tenant(tenant_id)


def fill_ports() -> None:
    """Hand audit the cipher of its payloads."""
    set_payload_cipher(VaultPayloadCipher())


loop.subscribe("key", forget)
loop.on_gap(selectors.forget_everything)
tenant_created.connect(equip, dispatch_uid="vault.equip")
fill_ports()
