"""Changes of tenants' secrets: each one transaction, one entry, one change in the change log.

An entry never contains a value, nor its length. Raises InvalidError, PermissionDenied if the actor no
longer manages secrets, and UnknownTenantError if the tenant does not exist or is closed.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Permission
from mcphost.vault.models import BY_LIMIT, FormerValue, StoredSecret
from mcphost.vault.secrets.fields import VALUE_NEEDED, check_new, check_rules, check_value
from mcphost.vault.secrets.ports import published_uses
from mcphost.vault.secrets.values import bound, seal_value
from mcphost.vault.services import ensure_tenant

MAX_SECRETS: Final = 100
MAX_VALUES: Final = 200
"""Values of a tenant, with those that were replaced or deleted within a day. Further ones are refused: if
they evicted old ones, a user who rotates often could see an older value in a response."""
MASKED_FOR: Final = timedelta(days=1)
"""How long a value that was replaced or deleted is masked in responses: services may still show it."""
PRUNED_AT_ONCE: Final = 500

CHANGE_NAME: Final = "secret"
"""The name of the change in the change log. Its object id: the secret's name."""


@sensitive_variables()
@transaction.atomic
def create_secret(
    tenant_id: UUID,
    name: str,
    value: str,
    *,
    hosts: Iterable[str],
    places: Iterable[str],
    actor: Actor,
) -> UUID:
    """Store a secret; return its id. A name can be used again once its secret was deleted."""
    lock_open_tenant(tenant_id, actor, Permission.MANAGE_SECRETS)
    rules = check_new(name, value, hosts, places)
    if StoredSecret.objects.filter(tenant=tenant_id).count() >= MAX_SECRETS:
        raise InvalidError({"name": [f"A tenant can have at most {MAX_SECRETS} secrets."]})
    _check_values(tenant_id, "name")
    row = StoredSecret(
        tenant=tenant_id,
        name=name,
        hosts=list(rules.hosts),
        places=list(rules.places),
        created_at=timezone.now(),
        created_by=_label_of(actor),
    )
    row.sealed = _seal(row, value)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        raise InvalidError({"name": ["This tenant has a secret of this name."]}) from None
    _record("secret.created", row, actor, _rules_of(row))
    return row.id


@sensitive_variables()
@transaction.atomic
def rotate_secret(tenant_id: UUID, secret_id: UUID, value: str, *, actor: Actor) -> bool:
    """Replace the value, for every use from now on; False if the secret is gone."""
    row = _lock_secret(tenant_id, secret_id, actor)
    if row is None:
        return False
    check_value(value)
    _replace_value(row, value, actor)
    return True


@sensitive_variables()
@transaction.atomic
def change_secret(
    tenant_id: UUID,
    secret_id: UUID,
    *,
    hosts: Iterable[str],
    places: Iterable[str],
    actor: Actor,
    value: str | None = None,
) -> bool:
    """Change where a secret may be sent; False if it is gone. Writes only a difference.

    A `value` replaces the stored one, as `rotate_secret` does. It is required to add a host or a place:
    otherwise a caller who does not know the stored value could have it sent to a host of their own. The
    new and the stored value are not compared, so no answer tells whether a guess is right.
    """
    row = _lock_secret(tenant_id, secret_id, actor)
    if row is None:
        return False
    rules = check_rules(hosts, places)
    before = _rules_of(row)
    if value is not None:
        check_value(value)
    elif _widened(before["hosts"], rules.hosts) or _widened(before["places"], rules.places):
        raise InvalidError({"value": [VALUE_NEEDED]})
    row.hosts, row.places = list(rules.hosts), list(rules.places)
    if _rules_of(row) != before:
        row.save(update_fields=["hosts", "places"])
        _record("secret.changed", row, actor, {**_rules_of(row), "before": before})
    if value is not None:
        _replace_value(row, value, actor)
    return True


@transaction.atomic
def delete_secret(tenant_id: UUID, secret_id: UUID, *, actor: Actor) -> bool:
    """Delete a secret; False if it is gone already. Its value is kept for a day, only to mask it in responses.

    Raises InvalidError, on `name`, while something published uses it.
    """
    row = _lock_secret(tenant_id, secret_id, actor)
    if row is None:
        return False
    if used := published_uses(tenant_id, row.name):
        names = ", ".join(used)
        sentence = (
            f"Published and using this secret: {names}. Disable them, or publish them without it."
        )
        raise InvalidError({"name": [sentence]})
    _keep_for_masking(row)
    StoredSecret.objects.filter(pk=row.pk).delete()
    _record("secret.deleted", row, actor, {})
    return True


@transaction.atomic
def prune_former_values() -> int:
    """Erase up to 500 values that were masked for long enough; return how many."""
    over = FormerValue.objects.filter(expires_at__lt=timezone.now()).order_by("expires_at")
    rows = list(over.values_list("id", "tenant", "name")[:PRUNED_AT_ONCE])
    FormerValue.objects.filter(id__in=[row for row, *_ in rows]).delete()
    for tenant, name in {tenant: name for _, tenant, name in rows}.items():
        announce(CHANGE_NAME, tenant=tenant, object_id=name)
    return len(rows)


def _check_values(tenant_id: UUID, field: str) -> None:
    values = sum(
        rows.objects.filter(tenant=tenant_id).count() for rows in (StoredSecret, FormerValue)
    )
    if values >= MAX_VALUES:
        sentence = (
            f"A tenant can have at most {MAX_VALUES} values of secrets, with those that were replaced "
            "or deleted within a day. Try again tomorrow."
        )
        raise InvalidError({field: [sentence]})


def _keep_for_masking(row: StoredSecret) -> None:
    """Keep the encrypted value as it is: a copy needs no key, and the key may be unreadable."""
    FormerValue.objects.create(
        tenant=row.tenant,
        secret=row.id,
        name=row.name,
        version=row.version,
        sealed=bytes(row.sealed),
        expires_at=timezone.now() + MASKED_FOR,
    )


def _lock_secret(tenant_id: UUID, secret_id: UUID, actor: Actor) -> StoredSecret | None:
    lock_open_tenant(tenant_id, actor, Permission.MANAGE_SECRETS)
    rows = StoredSecret.objects.select_for_update()
    return rows.filter(tenant=tenant_id, pk=secret_id).first()


def _widened(before: Iterable[str], after: Iterable[str]) -> bool:
    return not set(after) <= set(before)


@sensitive_variables()
def _replace_value(row: StoredSecret, value: str, actor: Actor) -> None:
    _check_values(row.tenant, "value")
    _keep_for_masking(row)
    row.version += 1
    row.sealed = _seal(row, value)
    row.rotated_at, row.rotated_by = timezone.now(), _label_of(actor)
    row.save(update_fields=["version", "sealed", "rotated_at", "rotated_by"])
    _record("secret.rotated", row, actor, {"version": row.version})


@sensitive_variables()
def _seal(row: StoredSecret, value: str) -> bytes:
    associated_data = bound(row.tenant, row.id, row.version, row.name)
    return seal_value(value, associated_data, ensure_tenant(row.tenant).payload_key)


def _rules_of(row: StoredSecret) -> dict[str, Any]:
    return {"hosts": row.hosts, "places": row.places}


def _label_of(actor: Actor) -> str:
    return (actor.label or actor.kind)[:BY_LIMIT]


def _record(action: str, row: StoredSecret, actor: Actor, facts: Mapping[str, Any]) -> None:
    """Write the entry, and have every process read the tenant's secrets again."""
    named = {"name": row.name, **facts}
    record(action, actor=actor, tenant=row.tenant, target=str(row.pk), facts=named)
    announce(CHANGE_NAME, tenant=row.tenant, object_id=row.name)
