"""Issuing and revoking tokens: each one transaction, one record, one change in the feed."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.identity import tokens
from mcphost.identity.models import Token
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.fields import limit_problems
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Audience, Role, audience_of, is_scope, may_hold

NAME_LIMIT = 100
SCOPES_LIMIT = 200


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What a new token is to be. Limits are None when it has none of its own."""

    name: str
    scopes: Iterable[str]
    audience: Audience = Audience.MCP
    expires_at: datetime | None = None
    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that was just made. `plaintext` exists here and nowhere else: show it once."""

    id: str
    name: str
    tenant: UUID
    audience: Audience
    scopes: tuple[str, ...]
    expires_at: datetime | None
    plaintext: str = field(repr=False)


@transaction.atomic
def issue(tenant_id: UUID, owner: User, wanted: TokenRequest, *, actor: Actor) -> IssuedToken:
    """Make a token of a member, with at most what their role may hold.

    Raises InvalidError for bad fields, and on `owner` if they are no active member of the tenant,
    or it is not there, or closed.
    """
    now = timezone.now()
    membership = _membership(tenant_id, owner)
    scopes = tuple(sorted(set(wanted.scopes)))
    _check(wanted, scopes, Role(membership.role), now)
    plaintext = tokens.new(secrets.token_bytes)
    row = Token.objects.create(
        id=plaintext.split("_")[1],
        tenant_id=tenant_id,
        owner=owner,
        membership=membership,
        audience=wanted.audience.value,
        name=wanted.name.strip(),
        digest=tokens.digest(plaintext),
        scopes=list(scopes),
        calls_per_minute=wanted.calls_per_minute,
        concurrent_calls=wanted.concurrent_calls,
        expires_at=wanted.expires_at,
    )
    facts = {
        "name": row.name,
        "owner": owner.get_username(),
        "audience": row.audience,
        "scopes": row.scopes,
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
    }
    record("token.issued", actor=actor, tenant=tenant_id, target=row.id, facts=facts)
    announce("token", tenant=tenant_id, object_id=row.id)
    return IssuedToken(
        id=row.id,
        name=row.name,
        tenant=tenant_id,
        audience=wanted.audience,
        scopes=scopes,
        expires_at=wanted.expires_at,
        plaintext=plaintext,
    )


@transaction.atomic
def revoke(tenant_id: UUID, token_id: str, *, actor: Actor) -> bool:
    """Make a token of this tenant worthless for good; False if it was, or is not there."""
    changed = Token.objects.filter(pk=token_id, tenant_id=tenant_id, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    if not changed:
        return False
    record("token.revoked", actor=actor, tenant=tenant_id, target=token_id)
    announce("token", tenant=tenant_id, object_id=token_id)
    return True


def _membership(tenant_id: UUID, owner: User) -> Membership:
    found = (
        Membership.objects.select_for_update()
        .filter(tenant_id=tenant_id, tenant__closed_at=None, user=owner, user__is_active=True)
        .first()
    )
    if found is None:
        raise InvalidError({"owner": ["The owner is not an active member of this tenant."]})
    return found


def _check(wanted: TokenRequest, scopes: Sequence[str], role: Role, now: datetime) -> None:
    found = {
        "name": _name_problems(wanted.name.strip()),
        "scopes": _scope_problems(scopes, wanted.audience, role),
        "expires_at": _expiry_problems(wanted.expires_at, now),
        "calls_per_minute": limit_problems(wanted.calls_per_minute),
        "concurrent_calls": limit_problems(wanted.concurrent_calls),
    }
    problems = {name: texts for name, texts in found.items() if texts}
    if problems:
        raise InvalidError(problems)


def _name_problems(name: str) -> list[str]:
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        return [f"Give a name of at most {NAME_LIMIT} printable characters."]
    return []


def _scope_problems(scopes: Sequence[str], audience: Audience, role: Role) -> list[str]:
    if not 0 < len(scopes) <= SCOPES_LIMIT:
        return [f"Give 1 to {SCOPES_LIMIT} scopes."]
    return [
        problem
        for scope in scopes
        if (problem := _scope_problem(scope, audience, role)) is not None
    ]


def _scope_problem(scope: str, audience: Audience, role: Role) -> str | None:
    if not is_scope(scope):
        return f"{scope!r} is not a scope."
    if audience_of(scope) is not audience:
        return f"{scope!r} is of no use to a token for {audience.value!r}."
    if not may_hold(role, scope):
        return f"The owner is {role.value} and may not hold {scope!r}."
    return None


def _expiry_problems(expires_at: datetime | None, now: datetime) -> list[str]:
    if expires_at is None:
        return []
    if timezone.is_naive(expires_at):
        return ["Give the time with its zone."]
    return [] if expires_at > now else ["Give a time to come."]
