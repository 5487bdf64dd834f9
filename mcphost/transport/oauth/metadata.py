"""Metadata that clients discover OAuth by, below `/.well-known/` (RFC 8414, RFC 9728).

It is made from the path and the Host, without a look-up: it does not tell whether a tenant exists.
There is no `openid-configuration`: the server issues no identities, and clients that ask for it also
ask for the metadata of RFC 8414.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from mcphost.identity.oauth import addresses, connection_log
from mcphost.identity.oauth.connection_log import StepKind
from mcphost.protocol.headers import Headers
from mcphost.tenants.fields import SLUG
from mcphost.transport import cors, errors
from mcphost.transport.oauth.refusals import answered_before_method, refuse
from mcphost.transport.request import Receive
from mcphost.transport.response import Send, send_json


def of_resource(issuer: str, slug: str) -> Mapping[str, Any]:
    """Return the metadata of a tenant's MCP endpoint (RFC 9728 section 2)."""
    return {
        "resource": addresses.resource_of(issuer, slug),
        "authorization_servers": [issuer],
        "scopes_supported": addresses.SCOPES,
        "bearer_methods_supported": ["header"],
    }


def of_server(issuer: str) -> Mapping[str, Any]:
    """Return the metadata of the platform's authorization server (RFC 8414 section 2)."""
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "revocation_endpoint": f"{issuer}/revoke",
        "scopes_supported": addresses.SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


_ENDPOINT: Final = rf"/t/({SLUG.pattern})/mcp/?"
_of_resource: Final = re.compile(re.escape(addresses.RESOURCE_METADATA) + _ENDPOINT)
# Some clients insert the path of the endpoint that they connect to.
_of_server: Final = re.compile(rf"/\.well-known/oauth-authorization-server(?:{_ENDPOINT}|/)?")


def document(path: str, issuer: str) -> Mapping[str, Any] | None:
    """Return the document at a path; None if there is none."""
    if match := _of_resource.fullmatch(path):
        return of_resource(issuer, match[1])
    return of_server(issuer) if _of_server.fullmatch(path) else None


def note_step(path: str) -> None:
    """Note for the log of the tenant in a path that a client asks for a document."""
    for pattern, step in (
        (_of_resource, StepKind.METADATA),
        (_of_server, StepKind.SERVER_METADATA),
    ):
        match = pattern.fullmatch(path)
        if match is not None and match[1] is not None:
            connection_log.note(step, match[1])


async def well_known(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer requests below `/.well-known/`: 404 in JSON where there is no document."""
    headers = Headers(scope["headers"])
    if await answered_before_method(headers, scope["method"], send):
        return
    metadata = document(scope["path"], addresses.issuer_of(headers.get("host") or ""))
    if metadata is None:
        await send_json(send, 404, errors.NOT_FOUND, cors.ANYONE)
    elif scope["method"] not in ("GET", "HEAD"):
        await refuse(send, 405, "Send GET.", [(b"allow", b"GET, HEAD, OPTIONS")])
    else:
        note_step(scope["path"])
        await _send(send, orjson.dumps(metadata), with_body=scope["method"] == "GET")


async def _send(send: Send, body: bytes, *, with_body: bool) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"public, max-age=300"),
        *cors.ANYONE,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body if with_body else b""})
