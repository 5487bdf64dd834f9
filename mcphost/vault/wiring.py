"""Subscriptions and ports of the vault, connected once at start-up."""

import logging
from typing import Any
from uuid import UUID

from mcphost.audit.ports import set_payload_cipher
from mcphost.feed.loop import ChangeNews, loop
from mcphost.tenants.signals import tenant_created
from mcphost.vault import selectors
from mcphost.vault.master import master_keys
from mcphost.vault.payloads import VaultPayloadCipher
from mcphost.vault.rewrapping import CHANGE_NAME
from mcphost.vault.secrets import selectors as secrets
from mcphost.vault.secrets.services import CHANGE_NAME as SECRET_CHANGE
from mcphost.vault.services import ensure_tenant
from mcphost.vault.wrapping import kek_id

log = logging.getLogger(__name__)


def forget(news: ChangeNews) -> None:
    """Drop what changed from the cache: one tenant's secrets, or the ring."""
    if news.tenant is None:
        selectors.forget_ring()
    else:
        selectors.forget_tenant(news.tenant)


def forget_secrets(news: ChangeNews) -> None:
    """Drop the changed tenant's secrets from the cache."""
    if news.tenant is not None:
        secrets.forget_tenant(news.tenant)


def check_master_key_change(news: ChangeNews) -> None:
    """Log an error if this process's master keys do not open the rewrapped keys.

    It can go on only with the keys that it has in memory, so it should be restarted soon.
    """
    own_ids = {kek_id(kek) for kek in master_keys().all()}
    if own_ids.isdisjoint(news.object_id.split()):
        log.error(
            "the keys are now wrapped under master key %s, which this process does not have: restart it "
            "with that key soon",
            news.object_id,
        )


def create_tenant_secrets(sender: Any, tenant_id: UUID, **kwargs: Any) -> None:
    """Make a new tenant's secrets. If this fails, their first use makes them."""
    ensure_tenant(tenant_id)


def fill_ports() -> None:
    """Set audit's payload cipher."""
    set_payload_cipher(VaultPayloadCipher())


loop.subscribe("key", forget)
loop.subscribe(CHANGE_NAME, check_master_key_change)
loop.subscribe(SECRET_CHANGE, forget_secrets)
loop.on_gap(selectors.forget_everything)
loop.on_gap(secrets.forget_everything)
tenant_created.connect(create_tenant_secrets, dispatch_uid="vault.create_tenant_secrets")
fill_ports()
