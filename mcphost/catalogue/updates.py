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
LIST = "list"
"""The change in the feed of a list that is to be asked for anew; its object says of what."""


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
    """Tell of what tools of many tenants have announced: their calls are the record of it.

    Each is a tenant with a URI in its normal form, or with the name of a list, which has no colon.
    """
    uris = [one for one in about if ":" in one[1]]
    lists = [one for one in about if ":" not in one[1]]
    for what, which in ((UPDATED, uris), (LIST, lists)):
        if which:
            announce_all(what, which)


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
