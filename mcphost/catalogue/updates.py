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

UPDATED = "resource.updated"
"""The change in the feed; its object is the URI."""


@transaction.atomic
def announce_update(tenant_id: UUID, uri: str, actor: Actor) -> None:
    """Tell whoever listens that what can be read at `uri` is not what it was.

    Raises Invalid, on `uri`, when the tenant serves nothing there.
    """
    if not is_served(offering(tenant_id), uri):
        raise Invalid({"uri": [nothing_at(uri)]})
    audit.record("resource.announced", actor=actor, tenant=tenant_id, target=uri, facts={})
    announce(UPDATED, tenant=tenant_id, object_id=uri)


@transaction.atomic
def announce_updates(about: Sequence[tuple[UUID, str]]) -> None:
    """The same for many tenants and URIs that tools have announced: their calls are the record."""
    announce_all(UPDATED, about)


def is_served(offering: Offering, uri: str) -> bool:
    """Whether there is a resource of that URI, or a template that it fits."""
    return offering.resource(uri) is not None or offering.match(uri) is not None


def nothing_at(uri: str) -> str:
    """The refusal, in words."""
    return f"There is no resource {uri[:200]!r} here, and no template that it fits."
