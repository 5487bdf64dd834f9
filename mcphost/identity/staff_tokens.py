"""Tokens of platform staff for the API. Each change is one transaction and one entry.

They are issued and revoked by the platform's operator, with `manage.py token`.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.identity import tokens
from mcphost.identity.models import StaffToken
from mcphost.identity.services import TokenRequest, check_request
from mcphost.tenants.access import require_still
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Permission

NOT_STAFF = "The owner is not an active account of platform staff."


@dataclass(frozen=True, slots=True)
class IssuedStaffToken:
    """A staff token that was just issued. `plaintext` exists here and nowhere else: show it once."""

    id: str
    scopes: tuple[str, ...]
    expires_at: datetime | None
    plaintext: str = field(repr=False)


@transaction.atomic
def issue_staff_token(
    owner: User, token_request: TokenRequest, *, actor: Actor
) -> IssuedStaffToken:
    """Issue a token for the API of the platform. `token_request` has no limits, and its audience is
    the API.

    Raises InvalidError for bad fields, and on `owner` unless it is active and staff; PermissionDenied
    to an actor who does not manage the platform's keys.
    """
    require_still(actor, None, Permission.MANAGE_KEYS)
    accounts = User.objects.select_for_update(no_key=True).filter(is_active=True, is_staff=True)
    if not accounts.filter(pk=owner.pk).exists():
        raise InvalidError({"owner": [NOT_STAFF]})
    check_request(token_request, lambda _: None)
    plaintext = tokens.new(secrets.token_bytes)
    row = StaffToken(
        id=plaintext.split("_")[1],
        owner=owner,
        name=token_request.name.strip(),
        digest=tokens.digest(plaintext),
        scopes=sorted(set(token_request.scopes)),
        issued_by=(actor.label or actor.kind)[:200],
        expires_at=token_request.expires_at,
    )
    row.save(force_insert=True)
    facts = {
        "owner": owner.get_username(),
        "name": row.name,
        "scopes": row.scopes,
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
    }
    record("staff_token.issued", actor=actor, target=row.id, facts=facts)
    return IssuedStaffToken(row.id, tuple(row.scopes), row.expires_at, plaintext)


@transaction.atomic
def revoke_staff_token(token_id: str, *, actor: Actor) -> bool:
    """Revoke a staff token for good; False if it was revoked, or does not exist."""
    require_still(actor, None, Permission.MANAGE_KEYS)
    live = StaffToken.objects.filter(pk=token_id, revoked_at=None)
    if not live.update(revoked_at=timezone.now()):
        return False
    record("staff_token.revoked", actor=actor, target=token_id)
    return True


def state_of(row: StaffToken, now: datetime) -> Literal["live", "revoked", "expired", "orphaned"]:
    """Return whether a token works. An orphaned one is of an account that is no active staff now."""
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is not None and row.expires_at <= now:
        return "expired"
    return "live" if row.owner.is_active and row.owner.is_staff else "orphaned"


def staff_tokens() -> Sequence[StaffToken]:
    """Return all staff tokens, newest first, including those that no longer work."""
    return tuple(StaffToken.objects.select_related("owner"))
