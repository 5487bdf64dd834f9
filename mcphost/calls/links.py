"""Links that were confirmed or called back: a call may wait for one (`ctx.wait_for`)."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.calls.models import OpenedLink
from mcphost.feed.services import announce

LINK = "link"
"""The name of the change in the change log."""
CONFIRMED = "link.confirmed"
CALLED_BACK = "callback.received"
PRUNED_AT_ONCE = 500

MACHINE = Actor("anonymous", "", "a machine that had the callback's address")


class Link(NamedTuple):
    """A link of a call, under the author's key. The call waits for it."""

    tenant: UUID
    call: UUID
    key: str

    @property
    def name(self) -> str:
        """The object id in the change log, unique within the tenant."""
        return f"{self.call.hex} {self.key}"


@transaction.atomic
def confirm(link: Link, actor: Actor, expires_at: datetime, now: datetime) -> bool:
    """Store that a signed-in user confirmed it, and notify all processes. False if done before."""
    facts = {"call": str(link.call), "key": link.key, "evidence": "signed-in"}
    return _done(link, expires_at, now, CONFIRMED, actor, facts)


@transaction.atomic
def call_back(link: Link, source: str, expires_at: datetime, now: datetime) -> bool:
    """Store that a machine at the address `source` posted to the callback; else as `confirm`."""
    facts = {"call": str(link.call), "key": link.key, "source": source}
    return _done(link, expires_at, now, CALLED_BACK, MACHINE, facts)


def _done(
    link: Link,
    expires_at: datetime,
    now: datetime,
    action: str,
    actor: Actor,
    facts: dict[str, str],
) -> bool:
    _, new = OpenedLink.objects.get_or_create(
        tenant=link.tenant,
        call=link.call,
        key=link.key,
        defaults={"opened_at": now, "expires_at": expires_at},
    )
    if new:
        record(action, actor=actor, tenant=link.tenant, target=link.key, facts=facts)
        announce(LINK, tenant=link.tenant, object_id=link.name)
    return new


def is_open(link: Link) -> bool:
    """Whether the link was confirmed or called back."""
    return OpenedLink.objects.filter(tenant=link.tenant, call=link.call, key=link.key).exists()


def prune(now: datetime) -> int:
    """Delete up to 500 expired links; return how many."""
    old = OpenedLink.objects.filter(expires_at__lt=now).values_list("pk", flat=True)
    going = list(old[:PRUNED_AT_ONCE])
    return OpenedLink.objects.filter(pk__in=going).delete()[0] if going else 0
