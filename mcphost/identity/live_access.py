"""How many tokens and connected apps work: those of a tenant, of one of its members, or of a user."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from mcphost.identity.models import Connection, RefreshToken, Token
from mcphost.identity.token_filters import TokenFilter


@dataclass(frozen=True, slots=True)
class LiveAccess:
    """The numbers of tokens and of connected apps."""

    tokens: int
    apps: int

    def __bool__(self) -> bool:
        return bool(self.tokens or self.apps)

    def __str__(self) -> str:
        """In words, without a number that is zero."""
        named = ((self.tokens, "live token"), (self.apps, "connected app"))
        return " and ".join(
            f"{number} {thing}{'' if number == 1 else 's'}" for number, thing in named if number
        )


def of_tenant(tenant_id: UUID, now: datetime) -> LiveAccess:
    """Count what acts in a tenant, for clients and for the API."""
    return _counted(Q(tenant_id=tenant_id), Q(membership__tenant_id=tenant_id), now)


def of_member(tenant_id: UUID, user_id: int, now: datetime) -> LiveAccess:
    """Count what acts for a member, and ends with the membership."""
    member = Q(membership__tenant_id=tenant_id, membership__user_id=user_id)
    return _counted(member, member, now)


def of_user(user_id: int, now: datetime) -> LiveAccess:
    """Count what acts for a user, in every tenant."""
    return _counted(Q(owner_id=user_id), Q(membership__user_id=user_id), now)


def _counted(of_token: Q, of_app: Q, now: datetime) -> LiveAccess:
    tokens = Token.objects.filter(of_token, TokenFilter("live").condition(now), connection=None)
    signed_in = RefreshToken.objects.filter(connection=OuterRef("pk"), expires_at__gt=now)
    apps = Connection.objects.filter(of_app, Exists(signed_in), ended_at=None)
    return LiveAccess(tokens.count(), apps.count())
