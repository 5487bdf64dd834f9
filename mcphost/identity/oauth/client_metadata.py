"""Metadata of OAuth clients: in a registration (RFC 7591 section 2), a document, or a pin.

Null is read as an absent value: some clients write all fields that they know.

The URL of a document comes from outside. It is fetched through `egress` only, which checks and pins its
addresses (draft-ietf-oauth-client-id-metadata-document sections 3 to 6).

Pins repeat what the documents of well-known clients say, for when a document cannot be fetched: their
hosts answer some data centres with 403, and have had outages. A pin serves until its document is read;
then what was read serves. The redirect URIs of native clients match on any port. ChatGPT and Codex also
publish a document for each connection, whose id is both in its URL and in its redirect URI. ChatGPT uses
it with servers that do not send `iss` (RFC 9207), as older versions of Codex did.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

import orjson
from django.conf import settings

from mcphost.egress.addresses import PORTS, AllowedHost, Target
from mcphost.egress.client import Egress, EgressLimits, EgressPolicy
from mcphost.egress.errors import EgressError
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.identity.models import CLIENT_ID_LENGTH
from mcphost.identity.oauth import redirects

NAME_LENGTH: Final = 100
AUTHENTICATION: Final = "none"
"""How clients authenticate at the token endpoint: all are public, and prove themselves by PKCE."""
GRANTS: Final = ("authorization_code", "refresh_token")
MAX_SECONDS: Final = 5.0
MAX_DOCUMENT_BYTES: Final = 5 * 1024
SHORTEST_FRESH: Final = timedelta(minutes=5)
LONGEST_FRESH: Final = timedelta(hours=24)
LIMITS: Final = EgressLimits(
    total_seconds=MAX_SECONDS, response_bytes=MAX_DOCUMENT_BYTES, redirects=0, attempts=1
)
_POOL: Final = "oauth-clients"
_MAX_AGE: Final = re.compile(r'(?:^|[,\s])max-age="?([0-9]{1,9})', re.IGNORECASE)
_UNCACHED: Final = re.compile(r"\bno-(?:store|cache)\b", re.IGNORECASE)


def parse(body: bytes) -> Mapping[str, Any] | None:
    """Return a JSON object without its null values; None for anything else."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    return {name: value for name, value in fields.items() if value is not None}


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, each once; none if it is no list."""
    if not isinstance(value, list):
        return ()
    return tuple(dict.fromkeys(item for item in value if isinstance(item, str)))


def display_name(fields: Mapping[str, Any], host: str) -> str:
    """Return the client's name for people, in one line without control or formatting characters.

    A client without a name that can be read is called by its host.
    """
    name = fields.get("client_name")
    words = name.split() if isinstance(name, str) else []
    printable = "".join(filter(str.isprintable, " ".join(words)))[:NAME_LENGTH].strip()
    return printable or host[:NAME_LENGTH]


class DocumentError(Exception):
    """There is no document, or not one that says who the client is. The message is for people."""


@dataclass(frozen=True, slots=True)
class ClientDocument:
    """A client as its document describes it, and how long that may be taken as true."""

    name: str
    redirect_uris: tuple[str, ...]
    fresh: timedelta


def read_document(url: str) -> ClientDocument:
    """Fetch the document of a client. Call it in a thread, outside of transactions: it takes up to 5 s.

    Raises DocumentError.
    """
    if (reason := _reason_not_to_fetch(url)) is not None:
        raise DocumentError(f"This client id {reason}.")
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
        raise DocumentError(
            "It requires the client to authenticate, which this server does not support."
        )
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


class Pin(NamedTuple):
    """A client with a metadata document: its id is the document's URL."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


PINS: Final = {
    pin.id: pin
    for pin in (
        Pin(
            "https://claude.ai/oauth/mcp-oauth-client-metadata",
            "Claude",
            ("https://claude.ai/api/mcp/auth_callback",),
        ),
        Pin(
            "https://claude.ai/oauth/claude-code-client-metadata",
            "Claude Code",
            ("http://localhost/callback", "http://127.0.0.1/callback"),
        ),
        Pin(
            "https://chatgpt.com/oauth/client.json",
            "ChatGPT",
            ("https://chatgpt.com/connector_platform_oauth_redirect",),
        ),
        Pin(
            "https://chatgpt.com/oauth/codex/client.json",
            "Codex",
            ("http://127.0.0.1/callback", "http://localhost/callback"),
        ),
        Pin(
            "https://vscode.dev/oauth/client-metadata.json",
            "Visual Studio Code",
            ("http://127.0.0.1:33418/", "https://vscode.dev/redirect"),
        ),
        Pin(
            "https://zed.dev/oauth/client-metadata.json",
            "Zed",
            ("http://127.0.0.1/callback",),
        ),
        Pin(
            "https://opencode.ai/oauth/opencode/client.json",
            "OpenCode",
            ("http://127.0.0.1/callback", "http://localhost/callback"),
        ),
    )
}

_OF_CONNECTIONS: Final = (
    (
        re.compile(r"https://chatgpt\.com/oauth/codex/(?P<id>[A-Za-z0-9_-]{1,64})/client\.json"),
        "Codex",
        "http://127.0.0.1/callback/",
    ),
    (
        re.compile(r"https://chatgpt\.com/oauth/(?P<id>[A-Za-z0-9_-]{1,64})/client\.json"),
        "ChatGPT",
        "https://chatgpt.com/connector/oauth/",
    ),
)


def pin_of(client_id: str) -> Pin | None:
    """Return the pin of a client; None if there is none."""
    if pin := PINS.get(client_id):
        return pin
    for pattern, name, redirect_uri in _OF_CONNECTIONS:
        if match := pattern.fullmatch(client_id):
            return Pin(client_id, name, (redirect_uri + match["id"],))
    return None
