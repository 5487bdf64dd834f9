"""Links that somebody opened: what a call may wait for (`ctx.wait_for`)."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.calls.models import OpenedLink
from mcphost.feed.services import announce

LINK = "link"
"""What the feed calls it."""
PRUNED_AT_ONCE = 500

_ANYBODY = Actor("anonymous", "", "whoever had the link")


class Link(NamedTuple):
    """What a link stands for: something that a call waits for, under the author's key."""

    tenant: UUID
    call: UUID
    key: str

    @property
    def name(self) -> str:
        """It, as the feed names it within its tenant."""
        return f"{self.call.hex} {self.key}"


@transaction.atomic
def open_link(link: Link, expires_at: datetime, now: datetime) -> bool:
    """Keep that the link was opened, and tell every process. False if it was opened before."""
    _, new = OpenedLink.objects.get_or_create(
        tenant=link.tenant,
        call=link.call,
        key=link.key,
        defaults={"opened_at": now, "expires_at": expires_at},
    )
    if new:
        facts = {"call": str(link.call), "key": link.key}
        record("link.opened", actor=_ANYBODY, tenant=link.tenant, target=link.key, facts=facts)
        announce(LINK, tenant=link.tenant, object_id=link.name)
    return new


def is_open(link: Link) -> bool:
    """Whether the link was opened."""
    return OpenedLink.objects.filter(tenant=link.tenant, call=link.call, key=link.key).exists()


def prune(now: datetime) -> int:
    """Forget up to 500 links whose time is over; return how many."""
    old = OpenedLink.objects.filter(expires_at__lt=now).values_list("pk", flat=True)
    going = list(old[:PRUNED_AT_ONCE])
    return OpenedLink.objects.filter(pk__in=going).delete()[0] if going else 0
