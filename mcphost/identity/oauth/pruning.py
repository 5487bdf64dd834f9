"""Delete what OAuth has left behind: clients without a connection, and what has expired."""

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from mcphost.identity.models import (
    AuthorizationCode,
    Connection,
    OAuthClient,
    RefreshToken,
    Token,
)
from mcphost.identity.oauth.clients import STALE_FOR
from mcphost.identity.oauth.connections import AUTHORIZATION_SERVER, end_now
from mcphost.identity.oauth.registration import ID_PREFIX, MAX_UNCONNECTED, unconnected
from mcphost.tenants.models import Membership

PRUNED_AT_ONCE: Final = 500
EXPIRED_FOR: Final = timedelta(hours=1)
"""How long codes and access tokens stay after their expiry: a code that comes twice ends its connection."""
UNCONNECTED_FOR: Final = timedelta(days=1)
UNCONNECTED_WHEN_FULL_FOR: Final = timedelta(hours=1)
ENDED_FOR: Final = timedelta(days=90)
"""How long a connection stays after it ended, and after it was last used if it expired."""


@transaction.atomic
def end_unused() -> int:
    """End up to PRUNED_AT_ONCE connections that expired and were not used for long; return how many."""
    now = timezone.now()
    refresh_tokens = RefreshToken.objects.filter(connection=OuterRef("pk"))
    unused = Connection.objects.filter(
        ~Exists(refresh_tokens.filter(expires_at__gt=now)),
        Q(last_used_at=None) | Q(last_used_at__lt=now - ENDED_FOR),
        ended_at=None,
        consented_at__lt=now - ENDED_FOR,
    )
    ended = 0
    for row in unused.select_related("membership", "client")[:PRUNED_AT_ONCE]:
        # One whose membership is locked is being connected again.
        unlocked = Membership.objects.select_for_update(skip_locked=True)
        if unlocked.filter(pk=row.membership_id).exists() and unused.filter(pk=row.pk).exists():
            ended += end_now(row, "its sign-in expired", AUTHORIZATION_SERVER)
    return ended


@transaction.atomic
def prune() -> int:
    """Delete up to PRUNED_AT_ONCE rows, with what depends on them; return how many."""
    now = timezone.now()
    is_full = unconnected()[:MAX_UNCONNECTED].count() == MAX_UNCONNECTED
    age = UNCONNECTED_WHEN_FULL_FOR if is_full else UNCONNECTED_FOR
    connections = Connection.objects.filter(client=OuterRef("pk"))
    codes = AuthorizationCode.objects.filter(client=OuterRef("pk"))
    unused = OAuthClient.objects.filter(~Exists(connections), ~Exists(codes))
    # Those that others depend on come last.
    over: tuple[QuerySet[Any], ...] = (
        AuthorizationCode.objects.filter(expires_at__lt=now - EXPIRED_FOR),
        RefreshToken.objects.filter(expires_at__lt=now),
        Token.objects.filter(connection__isnull=False, expires_at__lt=now - EXPIRED_FOR),
        Connection.objects.filter(ended_at__lt=now - ENDED_FOR),
        unused.filter(id__startswith=ID_PREFIX, created_at__lt=now - age),
        unused.filter(fresh_until__lt=now - STALE_FOR),
    )
    pruned = 0
    for rows in over:
        # A row that another transaction has locked is in use.
        unlocked = rows.select_for_update(skip_locked=True)
        ids = list(unlocked.values_list("pk", flat=True)[: PRUNED_AT_ONCE - pruned])
        rows.filter(pk__in=ids).delete()
        pruned += len(ids)
    return pruned
