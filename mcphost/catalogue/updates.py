"""Announce to all processes that the content at a URI has changed."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from mcphost.audit import services as audit
from mcphost.audit.records import Actor
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.selectors import offering
from mcphost.catalogue.snapshots import Offering
from mcphost.feed.services import announce, announce_all
from mcphost.protocol.uris import normalize, percent_encoded
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.roles import Permission

UPDATED = "resource.updated"
"""The name of this change in the change log; its object is the URI."""
LIST = "list"
"""The change log's name for a list that clients should request again; its object is the type."""


@transaction.atomic
def announce_update(tenant_id: UUID, uri: str, actor: Actor) -> None:
    """Notify subscribers that the content at `uri` has changed.

    Raises InvalidPrimitiveError, on `uri`, when the tenant serves nothing there, PermissionDenied if the actor no
    longer edits tools, and UnknownTenantError if the tenant does not exist or is closed.
    """
    lock_open_tenant(tenant_id, actor, Permission.EDIT_TOOLS)
    normal = served_as(offering(tenant_id), uri)
    if normal is None:
        raise InvalidPrimitiveError({"uri": [nothing_at(uri)]})
    audit.record("resource.announced", actor=actor, tenant=tenant_id, target=normal, facts={})
    announce(UPDATED, tenant=tenant_id, object_id=normal)


@transaction.atomic
def announce_updates(updates: Sequence[tuple[UUID, str]]) -> None:
    """Announce what tools of many tenants have announced; the entries are those of their calls.

    Each is a tenant with a URI in its normal form, or with the name of a list, which has no colon.
    """
    uris = [update for update in updates if ":" in update[1]]
    lists = [update for update in updates if ":" not in update[1]]
    for topic, rows in ((UPDATED, uris), (LIST, lists)):
        if rows:
            announce_all(topic, rows)


def served_as(offering: Offering, uri: str) -> str | None:
    """Return the normal form of a URI that a resource or template serves; else None."""
    try:
        normal = normalize(percent_encoded(uri))
    except ValueError:
        return None
    return None if offering.read_at(normal) is None else normal


def nothing_at(uri: str) -> str:
    """Return the refusal of a URI at which nothing is served."""
    return f"No resource or template of this tenant matches {uri[:200]!r}."
