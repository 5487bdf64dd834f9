"""How many calls wait for an answer, by the ring key that sealed what their clients hold."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, QuerySet, TextField
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from mcphost.audit.models import Entry
from mcphost.audit.records import INPUT_REQUIRED, ROUND_FINISHED
from mcphost.audit.selectors import SKEW, first_id


def calls_by_key(now: datetime, longest: timedelta) -> Mapping[str, int]:
    """Calls whose latest round asked and whose question has not expired, by the key's id.

    `longest` is how long a question waits at most: what is older is not looked at.
    """
    waiting = _waiting(now, longest).annotate(sealed_by=Cast(KT("facts__sealed_by"), TextField()))
    counted = waiting.order_by().values("sealed_by").annotate(calls=Count("id"))
    return {row["sealed_by"]: row["calls"] for row in counted if row["sealed_by"]}


def calls_of(tenant: UUID, now: datetime, longest: timedelta) -> int:
    """The same for one tenant, whatever the key."""
    return _waiting(now, longest).filter(tenant=tenant).count()


def _waiting(now: datetime, longest: timedelta) -> QuerySet[Entry]:
    later = Entry.objects.filter(call=OuterRef("call"), round__gt=OuterRef("round"))
    asking = Entry.objects.filter(
        outcome=INPUT_REQUIRED, action=ROUND_FINISHED, id__gte=first_id(now - longest - SKEW)
    )
    # As plain text: in our one form of times, the order of texts is that of times.
    expires = Cast(KT("facts__expires_at"), TextField())
    return asking.annotate(expires=expires).filter(~Exists(later), expires__gt=now.isoformat())
