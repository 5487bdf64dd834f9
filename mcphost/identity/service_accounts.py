"""Service accounts: programs that call a tenant in their own name, managed by its owners.

Changes raise PermissionDenied if the actor no longer manages tokens, and UnknownTenantError if there
is no such tenant.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Q
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce_all
from mcphost.identity.models import ServiceAccount, Token
from mcphost.tenants.access import lock_open_tenant, lock_tenant
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Permission

DESCRIPTION_LIMIT = 200
CREATOR_LIMIT = 200
MAX_ACCOUNTS = 200

# No letters that look alike, and no name that looks like a user's with something in brackets.
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,58}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class AccountListing:
    """A service account as shown to users. `live_tokens` counts those not revoked or expired.

    `last_used_at` is when any of its tokens was used last.
    """

    id: UUID
    name: str
    description: str
    created_by: str
    created_at: datetime
    disabled_at: datetime | None
    live_tokens: int
    last_used_at: datetime | None = None


@transaction.atomic
def create(tenant_id: UUID, name: str, description: str = "", *, actor: Actor) -> UUID:
    """Create a service account; return its id. Its name is never reused in this tenant.

    Raises InvalidError for a bad name or description, a name that is or was in use, and beyond 200
    accounts; UnknownTenantError if the tenant does not exist or is closed.
    """
    lock_open_tenant(tenant_id, actor, Permission.MANAGE_TOKENS)
    description = description.strip()
    problems: dict[str, list[str]] = {}
    if not _NAME.fullmatch(name):
        sentence = (
            "Use 1 to 60 lower-case letters, digits and `._-`; a letter or digit at both ends."
        )
        problems["name"] = [sentence]
    if len(description) > DESCRIPTION_LIMIT or not (description.isprintable() or not description):
        problems["description"] = [f"Use at most {DESCRIPTION_LIMIT} printable characters."]
    if problems:
        raise InvalidError(problems)
    if ServiceAccount.objects.filter(tenant_id=tenant_id, removed_at=None).count() >= MAX_ACCOUNTS:
        sentence = f"A tenant can have at most {MAX_ACCOUNTS} service accounts."
        raise InvalidError({"name": [sentence]})
    row = ServiceAccount(
        tenant_id=tenant_id,
        name=name,
        description=description,
        created_by=(actor.label or actor.kind)[:CREATOR_LIMIT],
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        problem = "This name is or was used by another service account."
        raise InvalidError({"name": [problem]}) from None
    _record("service_account.created", row, actor)
    return row.pk


@transaction.atomic
def disable(tenant_id: UUID, account_id: UUID, *, actor: Actor) -> bool:
    """Stop a service account's tokens until it is enabled; False if it was disabled, or is gone."""
    row = _locked(tenant_id, account_id, actor)
    if row is None or row.disabled_at is not None:
        return False
    row.disabled_at = timezone.now()
    row.save(update_fields=["disabled_at"])
    _record("service_account.disabled", row, actor)
    _announce_tokens(row)
    return True


@transaction.atomic
def enable(tenant_id: UUID, account_id: UUID, *, actor: Actor) -> bool:
    """Let a disabled service account's tokens work again; False if it was enabled, or is gone."""
    row = _locked(tenant_id, account_id, actor)
    if row is None or row.disabled_at is None:
        return False
    row.disabled_at = None
    row.save(update_fields=["disabled_at"])
    _record("service_account.enabled", row, actor)
    _announce_tokens(row)
    return True


@transaction.atomic
def remove(tenant_id: UUID, account_id: UUID, *, actor: Actor) -> bool:
    """Remove a service account and its tokens for good; False if there is none."""
    row = _locked(tenant_id, account_id, actor)
    if row is None:
        return False
    row.removed_at = timezone.now()
    row.save(update_fields=["removed_at"])
    _record("service_account.removed", row, actor)
    _announce_tokens(row)
    return True


def accounts(tenant_id: UUID) -> tuple[AccountListing, ...]:
    """Return the service accounts of a tenant by name, without those that were removed."""
    live = Q(tokens__revoked_at=None) & (
        Q(tokens__expires_at=None) | Q(tokens__expires_at__gt=timezone.now())
    )
    rows = ServiceAccount.objects.filter(tenant_id=tenant_id, removed_at=None).order_by("name")
    return tuple(
        AccountListing(
            id=row.pk,
            name=row.name,
            description=row.description,
            created_by=row.created_by,
            created_at=row.created_at,
            disabled_at=row.disabled_at,
            live_tokens=row.live,
            last_used_at=row.used,
        )
        for row in rows.annotate(
            live=Count("tokens", filter=live & Q(tokens__isnull=False)),
            used=Max("tokens__last_used_at"),
        )
    )


def _locked(tenant_id: UUID, account_id: UUID, actor: Actor) -> ServiceAccount | None:
    lock_tenant(tenant_id, actor, Permission.MANAGE_TOKENS)
    rows = ServiceAccount.objects.select_for_update()
    return rows.filter(tenant_id=tenant_id, pk=account_id, removed_at=None).first()


def _record(action: str, row: ServiceAccount, actor: Actor) -> None:
    facts = {"name": row.name}
    record(action, actor=actor, tenant=row.tenant_id, target=str(row.pk), facts=facts)


def _announce_tokens(row: ServiceAccount) -> None:
    """Have every process read the account's tokens again; expired and revoked ones do not work anyway."""
    unexpired = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    live = Token.objects.filter(unexpired, service_account=row, revoked_at=None)
    about = [(row.tenant_id, token_id) for token_id in live.values_list("pk", flat=True)]
    if about:
        announce_all("token", about)
