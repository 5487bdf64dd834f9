"""Telling every process that what can be read at a URI is not what it was."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from mcphost.audit import services as audit
from mcphost.audit.records import Actor
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.selectors import offering
from mcphost.catalogue.snapshots import Offering
from mcphost.feed.services import announce, announce_all
from mcphost.protocol.uris import normalize

UPDATED = "resource.updated"
"""The change in the feed; its object is the URI."""


@transaction.atomic
def announce_update(tenant_id: UUID, uri: str, actor: Actor) -> None:
    """Tell whoever listens that what can be read at `uri` is not what it was.

    Raises Invalid, on `uri`, when the tenant serves nothing there.
    """
    normal = served_as(offering(tenant_id), uri)
    if normal is None:
        raise Invalid({"uri": [nothing_at(uri)]})
    audit.record("resource.announced", actor=actor, tenant=tenant_id, target=normal, facts={})
    announce(UPDATED, tenant=tenant_id, object_id=normal)


@transaction.atomic
def announce_updates(about: Sequence[tuple[UUID, str]]) -> None:
    """The same for many tenants and URIs, in their normal form, that tools have announced.

    Their calls are the record of it.
    """
    announce_all(UPDATED, about)


def served_as(offering: Offering, uri: str) -> str | None:
    """The normal form of a URI of a resource, or of one that fits a template; else None."""
    try:
        normal = normalize(uri)
    except ValueError:
        return None
    found = offering.resource(normal) or offering.match(normal)
    return None if found is None else normal


def nothing_at(uri: str) -> str:
    """The refusal, in words."""
    return f"There is no resource {uri[:200]!r} here, and no template that it fits."
