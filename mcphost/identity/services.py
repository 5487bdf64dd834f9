"""Issue, renew and revoke tokens: each is one transaction, one entry, one change in the change log."""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.identity import tokens
from mcphost.identity.models import ServiceAccount, Token
from mcphost.identity.selectors import of_line
from mcphost.tenants.access import lock_account, lock_open_tenant, lock_tenant
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.fields import limit_problems
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import (
    Audience,
    Permission,
    Role,
    audience_of,
    is_scope,
    may_hold,
    may_take,
)

NAME_LIMIT = 100
SCOPES_LIMIT = 200
ISSUER_LIMIT = 200
MAX_TOKENS = 100
"""Tokens of one user or service account in a tenant that are live, or were issued within a day.

Without it, a caller could avoid the limits of single tokens by issuing more tokens.
"""
TOO_MANY = (
    f"The limit is {MAX_TOKENS} tokens that are live or were issued within a day. "
    "Revoke some, or try again tomorrow."
)
NO_ACCOUNT = "There is no such service account, or it is disabled."
NOT_RENEWABLE = "This token does not exist, is revoked, or its owner is gone: issue a new one."
FOR_ONESELF = "Users issue tokens only for themselves. For a program, create a service account."


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The properties of a token to issue. Limits are None when it has none of its own."""

    name: str
    scopes: Iterable[str]
    audience: Audience = Audience.MCP
    expires_at: datetime | None = None
    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that was just issued. `plaintext` exists here and nowhere else: show it once."""

    id: str
    name: str
    tenant: UUID
    audience: Audience
    scopes: tuple[str, ...]
    expires_at: datetime | None
    plaintext: str = field(repr=False)


@transaction.atomic
def issue(
    tenant_id: UUID,
    owner: User,
    token_request: TokenRequest,
    *,
    actor: Actor,
    consented: bool = False,
) -> IssuedToken:
    """Issue a token of a member, with at most what their role may hold.

    Users issue tokens for themselves only, with the scopes that they may take. A token issued by a
    command is labelled "without consent", unless `consented`: then the owner runs that command.
    Raises InvalidError for bad fields, and on `owner` if another user issues the token, or if the
    owner is not an active member of the tenant, or the tenant does not exist or is closed. To the
    owner the last two are PermissionDenied.
    """
    itself = actor.is_person(owner.pk)
    if actor.kind == "person" and not itself:
        raise InvalidError({"owner": [FOR_ONESELF]})
    membership = _lock_membership(tenant_id, owner, actor)
    role, granted = Role(membership.role), membership.scopes if itself else None
    check_request(token_request, lambda scope: _owner_problem(scope, role, granted))
    row = Token(
        tenant_id=tenant_id, owner=owner, membership=membership, consented=itself or consented
    )
    facts = {"owner": owner.get_username(), "consented": row.consented}
    return _make_token(row, token_request, actor, facts)


@transaction.atomic
def issue_for_service(
    tenant_id: UUID, account_id: UUID, token_request: TokenRequest, *, actor: Actor
) -> IssuedToken:
    """Issue a token of a service account, with at most what a member may hold.

    Raises InvalidError for bad fields, and on `owner` if the tenant has no such enabled service
    account; PermissionDenied if the actor no longer manages tokens, and UnknownTenantError if the
    tenant does not exist or is closed.
    """
    account = _lock_service_account(tenant_id, account_id, actor)
    check_request(token_request, _service_problem)
    row = Token(tenant_id=tenant_id, service_account=account)
    return _make_token(
        row, token_request, actor, {"owner": str(account), "service_account": str(account.pk)}
    )


@transaction.atomic
def renew(
    tenant_id: UUID, token_id: str, *, actor: Actor, expires_at: datetime | None
) -> IssuedToken:
    """Issue the successor of a token, working or expired: what its client has open goes on under it.

    It has the same holder, name, audience and limits, the scopes that the holder may still take, and
    the same principal. Users renew only their own. Raises InvalidError if the token is revoked or
    does not exist, and as `issue` and `issue_for_service`.
    """
    rows = Token.objects.select_related("owner", "service_account", "membership")
    former = rows.filter(pk=token_id, tenant_id=tenant_id, connection=None, revoked_at=None).first()
    if former is None:
        raise InvalidError({"token": [NOT_RENEWABLE]})
    problem_of: Callable[[str], str | None] = _service_problem
    row = Token(tenant_id=tenant_id, line=former.principal_id)
    if former.owner is None:
        assert former.service_account_id is not None
        row.service_account = _lock_service_account(tenant_id, former.service_account_id, actor)
    else:
        if actor.kind == "person" and not actor.is_person(former.owner.pk):
            raise InvalidError({"owner": [FOR_ONESELF]})
        row.owner, row.consented = former.owner, actor.is_person(former.owner.pk)
        row.membership = membership = _lock_membership(tenant_id, former.owner, actor)
        if former.membership != membership:
            raise InvalidError({"token": [NOT_RENEWABLE]})
        granted = membership.scopes if former.consented or row.consented else None
        problem_of = partial(_owner_problem, role=Role(membership.role), granted=granted)
    if not Token.objects.filter(pk=token_id, revoked_at=None).exists():  # now that it is locked
        raise InvalidError({"token": [NOT_RENEWABLE]})
    token_request = TokenRequest(
        former.name,
        tuple(scope for scope in former.scopes if problem_of(scope) is None),
        Audience(former.audience),
        expires_at,
        former.calls_per_minute,
        former.concurrent_calls,
    )
    check_request(token_request, problem_of)
    return _make_token(row, token_request, actor, {"renews": former.pk})


@transaction.atomic
def revoke(tenant_id: UUID, token_id: str, *, actor: Actor, stolen: bool = False) -> bool:
    """Revoke a token of this tenant for good; False if it was revoked, or does not exist.

    If it is `stolen`, all tokens of its line are revoked: whoever has it may have what was opened
    with it. Otherwise what was opened with another one goes on.

    Users may revoke their own. Raises PermissionDenied if the actor no longer manages tokens, and
    UnknownTenantError if there is no such tenant.
    """
    owner = Token.objects.filter(pk=token_id, tenant_id=tenant_id).values_list("owner", flat=True)
    if (owner_id := owner.first()) is not None and actor.is_person(owner_id):
        lock_account(actor)
    else:
        lock_tenant(tenant_id, actor, Permission.MANAGE_TOKENS)
    line = Token.objects.filter(of_line(token_id), tenant_id=tenant_id, revoked_at=None)
    ids = list(line.values_list("pk", flat=True))
    changed = line.filter(pk__in=ids if stolen else [token_id]).update(revoked_at=timezone.now())
    if not changed:
        return False
    facts = {"stolen": True, "tokens": sorted(ids)} if stolen else {}
    record("token.revoked", actor=actor, tenant=tenant_id, target=token_id, facts=facts)
    for each_id in ids:  # what was opened with one that has expired depends on the others
        announce("token", tenant=tenant_id, object_id=each_id)
    return True


def _lock_membership(tenant_id: UUID, owner: User, actor: Actor) -> Membership:
    """Lock and return an active membership. Raises PermissionDenied to its user, and InvalidError."""
    lock_account(actor)
    rows = Membership.objects.select_for_update(of=("self",))
    membership = rows.filter(
        tenant_id=tenant_id, tenant__closed_at=None, user=owner, user__is_active=True
    ).first()
    if membership is None and actor.is_person(owner.pk):
        raise PermissionDenied
    if membership is None:
        raise InvalidError({"owner": ["The owner is not an active member of this tenant."]})
    return membership


def _lock_service_account(tenant_id: UUID, account_id: UUID, actor: Actor) -> ServiceAccount:
    """Lock and return an enabled service account, for an actor who manages tokens."""
    tenant = lock_open_tenant(tenant_id, actor, Permission.MANAGE_TOKENS)
    accounts = ServiceAccount.objects.select_for_update()
    enabled = accounts.filter(tenant=tenant, disabled_at=None, removed_at=None)
    account = enabled.filter(pk=account_id).first()
    if account is None:
        raise InvalidError({"owner": [NO_ACCOUNT]})
    return account


def _make_token(
    row: Token, token_request: TokenRequest, actor: Actor, facts: Mapping[str, Any]
) -> IssuedToken:
    _check_number(row)
    plaintext = tokens.new(secrets.token_bytes)
    row.id = plaintext.split("_")[1]
    row.digest = tokens.digest(plaintext)
    row.audience = token_request.audience.value
    row.name = token_request.name.strip()
    row.scopes = sorted(set(token_request.scopes))
    row.calls_per_minute = token_request.calls_per_minute
    row.concurrent_calls = token_request.concurrent_calls
    row.expires_at = token_request.expires_at
    row.issued_by = (actor.label or actor.kind)[:ISSUER_LIMIT]
    row.save(force_insert=True)
    recorded_facts = {
        "name": row.name,
        **facts,
        "audience": row.audience,
        "scopes": row.scopes,
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
    }
    action = "token.renewed" if row.line else "token.issued"
    record(action, actor=actor, tenant=row.tenant_id, target=row.id, facts=recorded_facts)
    announce("token", tenant=row.tenant_id, object_id=row.id)
    return IssuedToken(
        id=row.id,
        name=row.name,
        tenant=row.tenant_id,
        audience=token_request.audience,
        scopes=tuple(row.scopes),
        expires_at=token_request.expires_at,
        plaintext=plaintext,
    )


def _check_number(row: Token) -> None:
    """Raise InvalidError if the holder, whose row is locked, has MAX_TOKENS."""
    now = timezone.now()
    of_holder = Token.objects.filter(
        tenant_id=row.tenant_id,
        owner=row.owner,
        service_account=row.service_account,
        connection=None,
    )
    lasting = Q(expires_at=None) | Q(expires_at__gt=now)
    live = lasting & Q(revoked_at=None, membership=row.membership)
    if of_holder.filter(live | Q(created_at__gt=now - timedelta(days=1))).count() >= MAX_TOKENS:
        raise InvalidError({"owner": [TOO_MANY]})


def check_request(token_request: TokenRequest, problem_of: Callable[[str], str | None]) -> None:
    """Raise InvalidError with all problems; `problem_of` says why a scope may not be held."""
    name, expires_at = token_request.name.strip(), token_request.expires_at
    name_problems, expiry_problems = [], []
    if not name or len(name) > NAME_LIMIT or not name.isprintable():
        name_problems = [f"Give a name of at most {NAME_LIMIT} printable characters."]
    if expires_at is not None and timezone.is_naive(expires_at):
        expiry_problems = ["Give the time with a time zone."]
    elif expires_at is not None and expires_at <= timezone.now():
        expiry_problems = ["Give a time in the future."]
    problems_by_field = {
        "name": name_problems,
        "scopes": _scope_problems(
            sorted(set(token_request.scopes)), token_request.audience, problem_of
        ),
        "expires_at": expiry_problems,
        "calls_per_minute": limit_problems(token_request.calls_per_minute),
        "concurrent_calls": limit_problems(token_request.concurrent_calls),
    }
    problems = {name: texts for name, texts in problems_by_field.items() if texts}
    if problems:
        raise InvalidError(problems)


def _scope_problems(
    scopes: Sequence[str], audience: Audience, problem_of: Callable[[str], str | None]
) -> list[str]:
    if not 0 < len(scopes) <= SCOPES_LIMIT:
        return [f"Give 1 to {SCOPES_LIMIT} scopes."]
    problems = []
    for scope in scopes:
        if not is_scope(scope):
            problems.append(f"{scope!r} is not a scope.")
        elif audience_of(scope) is not audience:
            problems.append(f"{scope!r} cannot be used by a token for {audience.value!r}.")
        elif (problem := problem_of(scope)) is not None:
            problems.append(problem)
    return problems


def _owner_problem(scope: str, role: Role, granted: Collection[str] | None) -> str | None:
    """Return why a scope may not be held. `granted` is None if the platform's operator decides."""
    if not may_hold(role, scope):
        return f"The owner is {role.value} and may not hold {scope!r}."
    if granted is not None and not may_take(role, scope, granted):
        return f"An owner of the tenant has to grant you {scope!r} first."
    return None


def _service_problem(scope: str) -> str | None:
    if not may_hold(Role.MEMBER, scope):
        return f"A service account may not hold {scope!r}."
    return None
