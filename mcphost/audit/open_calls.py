"""Calls that wait for an answer, by the key that sealed their state; and those whose state can no
longer be opened."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from mcphost.audit.models import Entry
from mcphost.audit.records import CANCELLATIONS, INPUT_REQUIRED, ROUND_FINISHED
from mcphost.audit.selectors import FINAL, SKEW, first_id

KEY_RETIRED: Final = "key.retired"
KEY_ROTATED: Final = "key.rotated"
SALT_DESTROYED: Final = "salt.destroyed"


class Loss(NamedTuple):
    """When sealed states became unreadable, and why, as part of a sentence.

    `by` is the label of the actor. `expired`: the key retired by itself, after its last token.
    """

    at: datetime
    reason: str
    by: str
    expired: bool = False


class Losses(NamedTuple):
    """Ring keys that no longer open tokens, by id, and tenants whose salt was destroyed."""

    keys: Mapping[str, Loss]
    tenants: Mapping[UUID, Loss]

    def of(self, tenant: UUID | None, sealed_by: str, expires_at: datetime) -> Loss | None:
        """The loss that made a state unreadable before it expired, if any; the earlier of two."""
        candidates = [
            loss
            for loss in (self.keys.get(sealed_by), tenant and self.tenants.get(tenant))
            if loss and loss.at < expires_at
        ]
        return min(candidates, default=None)


NONE: Final = Losses({}, {})


def losses() -> Losses:
    """All recorded losses: one query over the few entries that record one."""
    keys: dict[str, Loss] = {}
    tenants: dict[UUID, Loss] = {}
    rows = Entry.objects.filter(
        call__isnull=True, action__in=(KEY_RETIRED, KEY_ROTATED, SALT_DESTROYED)
    )
    columns = rows.order_by("id").values_list(
        "action", "at", "tenant", "target", "actor_label", "facts"
    )
    for action, at, tenant, target, label, facts in columns:
        if action == SALT_DESTROYED:
            if tenant is not None:
                tenants.setdefault(tenant, Loss(at, "the salt of the tenant was destroyed", label))
        elif action == KEY_RETIRED:
            reason = f"the key {target}, which sealed its state, was retired"
            keys.setdefault(target, Loss(at, reason, label, bool(facts.get("expired"))))
        elif facts.get("compromised"):
            for key in facts.get("retired") or ():
                reason = f"the key {key}, which sealed its state, was declared compromised"
                keys.setdefault(key, Loss(at, reason, label))
    return Losses(keys, tenants)


def calls_by_key(now: datetime, longest: timedelta) -> Mapping[str, int]:
    """How many calls wait for an answer that can still come, by the id of the key.

    `longest` is how long a question can wait at most: older entries are not read.
    """
    keyed = _open(now, longest).annotate(sealed_by=Cast(KT("facts__sealed_by"), TextField()))
    counted = keyed.order_by().values("sealed_by").annotate(calls=Count("call", distinct=True))
    return {row["sealed_by"]: row["calls"] for row in counted if row["sealed_by"]}


def lost_by_key(longest: timedelta) -> Mapping[str, int]:
    """How many calls waited for an answer when their key was retired early or declared compromised,
    by the id of the key."""
    counts: dict[str, int] = {}
    for key, loss in losses().keys.items():
        if not loss.expired:
            waited = _waiting(loss.at, longest, until=loss.at)
            counts[key] = _calls(waited.filter(facts__sealed_by=key))
    return counts


def calls_of(tenant: UUID, now: datetime, longest: timedelta) -> int:
    """How many calls of one tenant wait for an answer that can still come, under any key."""
    return _calls(_open(now, longest).filter(tenant=tenant))


def sealed_by_lost(lost: Losses) -> Q:
    """Filter: entries of rounds whose state cannot be opened, because its key or salt is lost."""
    return Q(facts__sealed_by__in=list(lost.keys)) | Q(tenant__in=list(lost.tenants))


def _calls(entries: QuerySet[Entry]) -> int:
    """Count the calls of these entries: a round that ran several times has several entries."""
    return entries.order_by().values("call").distinct().count()


def _open(now: datetime, longest: timedelta) -> QuerySet[Entry]:
    return _waiting(now, longest).exclude(sealed_by_lost(losses()))


def _waiting(now: datetime, longest: timedelta, until: datetime | None = None) -> QuerySet[Entry]:
    """The last rounds of calls that ended with a question that had not expired at `now`.

    `until`: as it was then, without what was recorded later.
    """
    of_call = Entry.objects.filter(call=OuterRef("call"))
    asking = Entry.objects.filter(
        outcome=INPUT_REQUIRED, action=ROUND_FINISHED, id__gte=first_id(now - longest - SKEW)
    )
    if until is not None:
        of_call = of_call.filter(at__lte=until)
        asking = asking.filter(at__lte=until, id__lt=first_id(until + SKEW))
    over = FINAL | Q(action__in=CANCELLATIONS)
    later = of_call.filter(Q(round__gt=OuterRef("round")) | over)
    # Compared as text: all times are written in one format, whose text order is that of time.
    expires = Cast(KT("facts__expires_at"), TextField())
    return asking.annotate(expires=expires).filter(~Exists(later), expires__gt=now.isoformat())
