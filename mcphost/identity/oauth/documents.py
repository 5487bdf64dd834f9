"""Read a client's metadata document: what a URL says that is the client's id.

The URL comes from outside, so that it is fetched through `egress` only, which checks and pins its
addresses. Specification: draft-ietf-oauth-client-id-metadata-document sections 3 to 6.
"""

import asyncio
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings

from mcphost.egress.addresses import PORTS, AllowedHost, Target
from mcphost.egress.client import Egress, EgressLimits, EgressPolicy
from mcphost.egress.errors import EgressError
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.identity.models import CLIENT_ID_LENGTH
from mcphost.identity.oauth import redirects
from mcphost.identity.oauth.metadata import AUTHENTICATION, display_name, parse, texts

MAX_SECONDS: Final = 5.0
MAX_BYTES: Final = 5 * 1024
SHORTEST_FRESH: Final = timedelta(minutes=5)
LONGEST_FRESH: Final = timedelta(hours=24)
LIMITS: Final = EgressLimits(
    total_seconds=MAX_SECONDS, response_bytes=MAX_BYTES, redirects=0, attempts=1
)
_POOL: Final = "oauth-clients"
_MAX_AGE: Final = re.compile(r'(?:^|[,\s])max-age="?([0-9]{1,9})', re.IGNORECASE)
_UNCACHED: Final = re.compile(r"\bno-(?:store|cache)\b", re.IGNORECASE)


class DocumentError(Exception):
    """There is no document, or not one that says who the client is. The message is for people."""


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """A client as its document describes it, and how long that may be taken as true."""

    name: str
    redirect_uris: tuple[str, ...]
    fresh: timedelta


def read(url: str) -> ClientDocument:
    """Fetch the document of a client, in a thread and outside of transactions: it takes up to 5 s.

    Raises DocumentError.
    """
    if (reason := _reason_not_to_fetch(url)) is not None:
        raise DocumentError(f"This id of a client {reason}.")
    response = asyncio.run(_fetch(url))
    if response.status != 200:
        raise DocumentError(f"Its host answers with status {response.status}.")
    fields = parse(response.body)
    if fields is None:
        raise DocumentError("It is not a JSON object.")
    if fields.get("client_id") != url:
        raise DocumentError("It describes another client: its client_id is not its URL.")
    methods = texts(fields.get("token_endpoint_auth_methods_supported"))
    if AUTHENTICATION not in (fields.get("token_endpoint_auth_method", AUTHENTICATION), *methods):
        raise DocumentError("It demands that the client authenticates, which no client does here.")
    # Others may be for other servers, and nothing is ever sent to them.
    uris = [uri for uri in texts(fields.get("redirect_uris")) if redirects.problem(uri) is None]
    if not uris:
        raise DocumentError("It has no redirect URI that may be used.")
    name = display_name(fields, Target.parse(url).authority)
    return ClientDocument(name, tuple(uris), _fresh(response.header("cache-control") or ""))


def _reason_not_to_fetch(url: str) -> str | None:
    if len(url) > CLIENT_ID_LENGTH:
        return f"has more than {CLIENT_ID_LENGTH} characters"
    if not url.startswith("https://"):
        return "is not an https URL"
    return redirects.problem(url)


async def _fetch(url: str) -> ReceivedResponse:
    ports = settings.MCPHOST_EGRESS_LOOPBACK_PORTS
    hosts = tuple(AllowedHost("https", "*", port) for port in (PORTS["https"], *ports))
    egress = Egress(loopback_ports=ports)
    try:
        request = OutgoingRequest(url, headers=(("Accept", "application/json"),))
        return await egress.send(request, EgressPolicy(_POOL, hosts, LIMITS))
    except EgressError as error:
        raise DocumentError(str(error)) from None
    finally:
        await egress.aclose()


def _fresh(cache_control: str) -> timedelta:
    """Return how long a response is fresh (RFC 9111 section 5.2.2), within limits."""
    age = _MAX_AGE.search(cache_control)
    if age is None or _UNCACHED.search(cache_control):
        return SHORTEST_FRESH
    return min(max(timedelta(seconds=int(age[1])), SHORTEST_FRESH), LONGEST_FRESH)
