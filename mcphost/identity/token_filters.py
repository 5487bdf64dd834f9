"""Filters of a tenant's tokens: their states as conditions, and their owners."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Coalesce

from mcphost.identity.models import Token

REVOKED: Final = Q(revoked_at__isnull=False)


def _works(now: datetime) -> Q:
    """The condition for tokens that are neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


_ORPHANED: Final = Q(service_account=None, membership=None) | Q(
    service_account__removed_at__isnull=False
)
_DISABLED: Final = Q(service_account__removed_at=None, service_account__disabled_at__isnull=False)
_STATES: Final[Mapping[str, Callable[[datetime], Q]]] = {
    "live": lambda now: _works(now) & ~_ORPHANED & ~_DISABLED,
    "expired": lambda now: Q(revoked_at=None, expires_at__lte=now),
    "disabled": lambda now: _works(now) & _DISABLED,
    "orphaned": lambda now: _works(now) & _ORPHANED,
    "revoked": lambda now: REVOKED,
}
"""The conditions for the states of tokens, as `TokenListing.state` names them."""
TOKEN_STATES: Final = tuple(_STATES)


@dataclass(frozen=True, slots=True)
class TokenFilter:
    """Which tokens are listed: in one state, and of owners with this text in their names. `also` is the id of a token
    that is listed in any case."""

    state: str = ""
    owner: str = ""
    also: str = ""

    def condition(self, now: datetime) -> Q:
        """Return what it asks of a row."""
        condition = _STATES[self.state](now) if self.state else Q()
        if self.owner:
            condition &= Q(owner__username__icontains=self.owner) | Q(
                service_account__name__icontains=self.owner
            )
        return condition | Q(pk=self.also) if self.also and condition else condition


def token_owners(tenant_id: UUID, limit: int) -> tuple[str, ...]:
    """Return the names of the owners of a tenant's tokens, the first ones by name."""
    names = Coalesce("owner__username", "service_account__name")
    rows = Token.objects.filter(connection=None, tenant_id=tenant_id).annotate(owner_name=names)
    listed = rows.order_by("owner_name").values_list("owner_name", flat=True).distinct()
    return tuple(listed[:limit])
