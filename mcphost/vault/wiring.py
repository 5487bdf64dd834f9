"""What the vault listens to and fills in, connected once at start-up."""

import logging
from typing import Any
from uuid import UUID

from mcphost.audit.ports import set_payload_cipher
from mcphost.feed.loop import ChangeNews, loop
from mcphost.tenants.signals import tenant_created
from mcphost.vault import selectors
from mcphost.vault.master import master_keys
from mcphost.vault.payloads import VaultPayloadCipher
from mcphost.vault.rewrapping import NEWS
from mcphost.vault.services import ensure_tenant
from mcphost.vault.wrapping import kek_id

log = logging.getLogger(__name__)


def forget(news: ChangeNews) -> None:
    """Drop what changed: one tenant's secrets, or the ring."""
    if news.tenant is None:
        selectors.forget_ring()
    else:
        selectors.forget_tenant(news.tenant)


def look_at_master_key(news: ChangeNews) -> None:
    """Say it while there is time: a process whose master key opens nothing any more goes on with what
    it remembers, and with nothing else."""
    ours = {kek_id(kek) for kek in master_keys().all()}
    if ours.isdisjoint(news.object_id.split()):
        log.error(
            "the keys are wrapped by the master key %s now, which this process does not have: restart "
            "it with that one soon",
            news.object_id,
        )


def equip(sender: Any, tenant_id: UUID, **kwargs: Any) -> None:
    """Make a new tenant's secrets. Should it fail, their first use makes them."""
    ensure_tenant(tenant_id)


def fill_ports() -> None:
    """Hand audit the cipher of its payloads."""
    set_payload_cipher(VaultPayloadCipher())


loop.subscribe("key", forget)
loop.subscribe(NEWS, look_at_master_key)
loop.on_gap(selectors.forget_everything)
tenant_created.connect(equip, dispatch_uid="vault.equip")
fill_ports()
