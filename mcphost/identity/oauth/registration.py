"""Dynamic client registration (RFC 7591): a client without a metadata document makes itself known.

Every program may register, so that there are limits: by address, and for all clients without a
connection. What is registered means nothing until a member consents.
"""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.db.models import Exists, OuterRef, QuerySet

from mcphost.identity.attempts import count_event, network
from mcphost.identity.models import Connection, OAuthClient
from mcphost.identity.oauth import redirects
from mcphost.identity.oauth.client_metadata import (
    AUTHENTICATION,
    GRANTS,
    display_name,
    parse,
    texts,
)
from mcphost.identity.oauth.errors import OAuthError, OAuthErrorCode

MAX_REDIRECT_URIS: Final = 10
PER_ADDRESS: Final = 20
WINDOW: Final = timedelta(hours=1)
MAX_UNCONNECTED: Final = 10_000
ID_PREFIX: Final = "dcr-"
_ID_BYTES: Final = 16


def register(body: bytes, address: str) -> Mapping[str, Any]:
    """Register a client; return its metadata as the answer in JSON (RFC 7591 section 3.2.1).

    `address` is where the request came from. Raises OAuthError.
    """
    fields = parse(body)
    if fields is None:
        raise _bad_metadata("A registration must be a JSON object.")
    grants = fields.get("grant_types", list(GRANTS))
    if GRANTS[0] not in texts(grants):
        raise _bad_metadata(f"The grants of this server are {' and '.join(GRANTS)}.")
    uris = _redirect_uris(fields)
    if not count_event(f"registration {network(address)}", PER_ADDRESS, WINDOW):
        raise OAuthError(
            OAuthErrorCode.TOO_MANY,
            f"At most {PER_ADDRESS} clients an hour are registered from one network.",
        )
    if unconnected()[:MAX_UNCONNECTED].count() == MAX_UNCONNECTED:
        raise OAuthError(
            OAuthErrorCode.TOO_MANY,
            "Too many clients are registered that no member has connected. Try again later.",
        )
    client = OAuthClient.objects.create(
        id=ID_PREFIX + secrets.token_hex(_ID_BYTES),
        name=display_name(fields, redirects.host_of(uris[0])),
        redirect_uris=uris,
    )
    return {
        "client_id": client.id,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "client_name": client.name,
        "redirect_uris": uris,
        "grant_types": list(GRANTS),
        "response_types": ["code"],
        "token_endpoint_auth_method": AUTHENTICATION,
    }


def unconnected() -> QuerySet[OAuthClient]:
    """Return the registered clients that no member has connected."""
    connections = Connection.objects.filter(client=OuterRef("pk"))
    return OAuthClient.objects.filter(~Exists(connections), id__startswith=ID_PREFIX)


def _redirect_uris(fields: Mapping[str, Any]) -> list[str]:
    uris = fields.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECT_URIS:
        raise _bad_redirect(f"redirect_uris must be a list of 1 to {MAX_REDIRECT_URIS} URIs.")
    for uri in uris:
        reason = redirects.problem(uri) if isinstance(uri, str) else "is not a text"
        if reason is not None:
            raise _bad_redirect(f"A redirect URI {reason}.")
    return list(texts(uris))


def _bad_metadata(reason: str) -> OAuthError:
    return OAuthError(OAuthErrorCode.INVALID_CLIENT_METADATA, reason)


def _bad_redirect(reason: str) -> OAuthError:
    return OAuthError(OAuthErrorCode.INVALID_REDIRECT_URI, reason)
