"""Which OAuth clients there are: registered ones, and those with a metadata document."""

import logging
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from mcphost.identity.attempts import count_event
from mcphost.identity.models import CLIENT_ID_LENGTH, OAuthClient
from mcphost.identity.oauth import client_metadata
from mcphost.identity.oauth.client_metadata import DocumentError, pin_of
from mcphost.identity.oauth.errors import OAuthError, OAuthErrorCode
from mcphost.tenants.models import Tenant

STALE_FOR: Final = timedelta(days=7)
"""How long a document serves after it was read, while it cannot be read again."""

MAX_DOCUMENTS: Final = 30
"""How many documents the server reads in an hour for one person: each may take a thread for seconds."""
ADD_AGAIN: Final = "Remove the connection and add it again."
"""What helps a client whose registration is gone."""

log = logging.getLogger(__name__)


def find(client_id: str) -> OAuthClient | None:
    """Return a client that is stored or pinned. Nothing is fetched; a pin may have no row yet."""
    if len(client_id) > CLIENT_ID_LENGTH or not (client_id.isascii() and client_id.isprintable()):
        return None
    client = OAuthClient.objects.filter(id=client_id).first()
    if client is None and (pin := pin_of(client_id)) is not None:
        return OAuthClient(id=pin.id, name=pin.name, redirect_uris=list(pin.redirect_uris))
    return client


def resolve(client_id: str, user_id: int) -> OAuthClient:
    """Return the stored client that a person who is signed in is asked about.

    Its document is read if what is stored of it is not fresh, at most MAX_DOCUMENTS times an hour for
    one person. Call it in a thread and outside of transactions: that takes up to 5 s. Raises
    OAuthError, with words for the person.
    """
    client = find(client_id)
    now = timezone.now()
    if client is not None:
        fresh = client.fresh_until is not None and client.fresh_until > now
        if fresh or not client.has_document:
            return client
    elif not client_id.startswith("https://"):
        raise _unknown(f"No client is registered with this id. {ADD_AGAIN}")
    try:
        if not count_event(f"documents for {user_id}", MAX_DOCUMENTS, timedelta(hours=1)):
            raise DocumentError("You have opened too many of them. Try again in an hour.")
        document = client_metadata.read_document(client_id)
    except DocumentError as error:
        log.info("the metadata document of %r was not read: %s", client_id, error)
        pin = pin_of(client_id)
        if client is not None and client.read_at is not None and client.read_at > now - STALE_FOR:
            values: dict[str, Any] = {}
        elif pin is not None:
            values = {"name": pin.name, "redirect_uris": list(pin.redirect_uris), "read_at": None}
        else:
            raise _unknown(f"The client's metadata document cannot be used. {error}") from None
        # A host that is away is not waited for at every consent.
        values["fresh_until"] = now + client_metadata.SHORTEST_FRESH
    else:
        values = {
            "name": document.name,
            "redirect_uris": list(document.redirect_uris),
            "read_at": now,
            "fresh_until": now + document.fresh,
        }
    return OAuthClient.objects.update_or_create(id=client_id, defaults=values)[0]


def allowed_in(client: OAuthClient, tenant: Tenant) -> str | None:
    """Return why members of a tenant cannot connect a client, in words; None if they can."""
    if client.has_document or not tenant.metadata_documents_only:
        return None
    return (
        f"{tenant.title} accepts only clients with a metadata document, whose host is known. "
        f"{client.name} has registered itself instead. An owner of the tenant can allow it."
    )


def _unknown(reason: str) -> OAuthError:
    return OAuthError(OAuthErrorCode.INVALID_CLIENT, reason)
