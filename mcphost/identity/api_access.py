"""Authenticate the API's tokens, always from the database: who lost a role loses it at once."""

import hmac
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from mcphost.audit.last_use import LastUse
from mcphost.audit.records import Actor
from mcphost.identity import selectors
from mcphost.identity.models import StaffToken
from mcphost.identity.tokens import parse
from mcphost.tenants.access import without_staff_rights
from mcphost.tenants.roles import Audience

_staff_token_use: Final[LastUse[str]] = LastUse(StaffToken)


@dataclass(frozen=True, slots=True)
class ApiCredential:
    """A live token of the API. `user` has the rights that the token acts with.

    `tenant` is the only one that it reaches; None for staff tokens, which reach all. `scopes` are
    those that the owner's role may still hold.
    """

    token_id: str
    user: User
    tenant: UUID | None
    scopes: frozenset[str]
    actor: Actor


def authenticate_api(bearer: str) -> ApiCredential | None:
    """Return the credential of a bearer token; None for one that does not work, without a reason."""
    return _tenant_credential(bearer) or _staff_credential(bearer)


def _tenant_credential(bearer: str) -> ApiCredential | None:
    now = timezone.now()
    authenticated = selectors.load(bearer, Audience.API, None, now)
    principal = None if authenticated is None else authenticated.principal
    if principal is None or principal.token_id is None or principal.user_id is None:
        return None  # service accounts have no rights in the API
    user = User.objects.filter(pk=principal.user_id, is_active=True).first()
    if user is None:
        return None
    selectors.last_use.note(principal.token_id, now)
    return ApiCredential(
        principal.token_id,
        without_staff_rights(user),
        principal.tenant,
        principal.scopes,
        Actor("person", str(user.pk), principal.label, principal.token_id),
    )


def _staff_credential(bearer: str) -> ApiCredential | None:
    parsed, now = parse(bearer), timezone.now()
    if parsed is None:
        return None
    unexpired = Q(expires_at=None) | Q(expires_at__gt=now)
    rows = StaffToken.objects.filter(
        unexpired, revoked_at=None, owner__is_active=True, owner__is_staff=True
    )
    row = rows.select_related("owner").filter(pk=parsed.id).first()
    if row is None or not hmac.compare_digest(bytes(row.digest), parsed.digest):
        return None
    _staff_token_use.note(row.id, now)
    label = f"{row.owner.get_username()} ({selectors.quoted(row.name)}, staff token)"
    return ApiCredential(
        row.id,
        row.owner,
        None,
        frozenset(row.scopes),
        Actor("person", str(row.owner_id), label, row.id),
    )
