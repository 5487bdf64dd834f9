"""Large values of stateless calls that wait for an answer, kept beside their request states.

The content of a part is sealed, and opaque here. A part is kept for as long as a state names it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import Count, F, Sum
from django.db.models.functions import Greatest, Now

from mcphost.audit.writer.conditions import POSTGRESQL
from mcphost.calls.models import StatePart

PRUNED_AT_ONCE: Final = 500

_LOCKS: Final = 0x57A7E9A7
"""The first number of the advisory locks of tenants. The second number is a part of the tenant's id."""


class StatePartsFullError(Exception):
    """The tenant has too many parts, or they are too large together."""


class StatePartGoneError(Exception):
    """A part is not there any more: it has expired, or its call has ended."""


class MaxParts(NamedTuple):
    """How many parts one tenant may have, and how many bytes they may have together."""

    rows: int
    bytes: int


class NewPart(NamedTuple):
    """A part to be stored, sealed."""

    id: UUID
    tenant: UUID
    call: UUID
    content: str


@transaction.atomic
def extend(tenant: UUID, parts: Sequence[UUID], until: datetime) -> None:
    """Keep parts at least until then. Raises StatePartGoneError, and changes nothing then."""
    rows = StatePart.objects.filter(tenant=tenant, id__in=parts, expires_at__gt=Now())
    if rows.update(expires_at=Greatest(F("expires_at"), until)) != len(parts):
        raise StatePartGoneError


@transaction.atomic
def add(new: NewPart, until: datetime, max_parts: MaxParts) -> None:
    """Store a part until then. Safe to run twice. Raises StatePartsFullError."""
    _lock(new.tenant)
    other_parts = StatePart.objects.filter(tenant=new.tenant).exclude(id=new.id)
    totals = other_parts.aggregate(rows=Count("id"), bytes=Sum("size"))
    size = len(new.content)
    if totals["rows"] >= max_parts.rows or (totals["bytes"] or 0) + size > max_parts.bytes:
        raise StatePartsFullError
    row = StatePart(
        id=new.id,
        tenant=new.tenant,
        call=new.call,
        size=size,
        content=new.content,
        expires_at=until,
    )
    StatePart.objects.bulk_create([row], ignore_conflicts=True)


def read(tenant: UUID, call: UUID, parts: Sequence[UUID]) -> dict[UUID, str]:
    """Return the parts of a call that are there, by id."""
    rows = StatePart.objects.filter(tenant=tenant, call=call, id__in=parts, expires_at__gt=Now())
    return dict(rows.values_list("id", "content"))


def end(tenant: UUID, parts: Sequence[UUID], until: datetime | None = None) -> None:
    """Delete the parts of a call that is over; with `until`, only then."""
    rows = StatePart.objects.filter(tenant=tenant, id__in=parts)
    if until is None:
        rows.delete()
    else:
        rows.filter(expires_at__gt=until).update(expires_at=until)


def prune() -> int:
    """Delete up to 500 expired parts; return how many."""
    over = StatePart.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    ids = list(over.values_list("id", flat=True)[:PRUNED_AT_ONCE])
    StatePart.objects.filter(id__in=ids, expires_at__lt=Now()).delete()
    return len(ids)


def _lock(tenant: UUID) -> None:
    """Let additions of one tenant follow one another. SQLite has one writer at a time anyway."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == POSTGRESQL:
        number = int.from_bytes(tenant.bytes[:4], signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCKS, number])
