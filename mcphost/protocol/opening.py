"""Turns headers and a body into an `Exchange`, or into the error that answers the request.

The order of the checks is part of the behaviour: a client of another revision must receive the
version error before any other error.

1. the body is JSON, one object, a request or a notification, nested at most 64 deep, with whole numbers
   that are read exactly; members that are written but left out (`empty_members`) are dropped
2. the era: a legacy message is passed to `legacy.opening`
3. `_meta` has what every modern request must carry
4. `MCP-Protocol-Version` equals the version in `_meta`
5. the version is supported
6. `Mcp-Method` and `Mcp-Name` equal the values in the body
7. the rest of `_meta`, and the params of methods that the revision defines

Spec: basic/index, basic/versioning, basic/transports/streamable-http.
"""

from typing import Any, Final

import orjson
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from mcphost.protocol import tasks
from mcphost.protocol.empty_members import drop_empty
from mcphost.protocol.errors import (
    PARSE_ERROR,
    ProtocolError,
    invalid_request,
    shown,
    unsupported_version,
)
from mcphost.protocol.exact_numbers import AS_ZEROS, MANY_DIGITS, check_numbers
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers, check_method, check_name, check_version
from mcphost.protocol.json_values import replace_lone_surrogates
from mcphost.protocol.legacy.errors import in_session
from mcphost.protocol.legacy.opening import LegacyBody, open_body
from mcphost.protocol.nesting import check_depth
from mcphost.protocol.params import NAME_FIELDS, check_params, check_type, read_meta, required
from mcphost.protocol.revisions import REVISION, REVISIONS, Era, era_of

_NOTIFICATIONS: Final = "notifications/"
_META: Final = "params._meta"
_HINTS: Final = dict.fromkeys(REVISIONS, "; this revision needs a session: send initialize first")

RequestId = str | int | None


def open_post(headers: Headers, body: bytes) -> Exchange | LegacyBody:
    """Open one POST body of a client of any revision.

    A body is legacy if its `_meta` has no version, and its header has none or one before 2026.
    Raises ProtocolError, with the request's id where it could be read, and SessionError for a legacy
    client. The error never carries the id of a response: the server chose that id, and the client
    would take the error for the answer to a request of its own.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = _parse_repaired(headers, body)
    if b"null" in body or b"[" in body:  # nearly all bodies have neither
        drop_empty(parsed)
    try:
        modern = PROTOCOL_VERSION_META_KEY in parsed["params"]["_meta"]
    except (KeyError, TypeError):
        modern = False
    if not modern:
        version = headers.get("mcp-protocol-version")
        if era_of(version) is Era.LEGACY:
            return open_body(version, parsed, body)
    return _open(headers, parsed, body)


def _parse_repaired(headers: Headers, body: bytes) -> Any:
    """Parse a body that is not JSON as it is. Raises ProtocolError, and SessionError for a legacy client."""
    try:
        return orjson.loads(replace_lone_surrogates(body))
    except orjson.JSONDecodeError as failure:
        error = ProtocolError(PARSE_ERROR, f"The body is not valid JSON: {failure}")
    version = headers.get("mcp-protocol-version")
    names_one = version is not None or headers.count("mcp-session-id") > 0
    if names_one and era_of(version) is Era.LEGACY:
        raise in_session(error)
    raise error


def _open(headers: Headers, parsed: Any, body: bytes) -> Exchange:
    if type(parsed) is list:
        raise invalid_request("Batches are not supported: send one message per POST")
    if type(parsed) is not dict:
        raise invalid_request("The body must be a JSON object: one request or notification")
    is_response = "method" not in parsed and ("result" in parsed or "error" in parsed)
    request_id: RequestId = None
    if "id" in parsed and not is_response:
        request_id = parsed["id"]
        if type(request_id) is not str and type(request_id) is not int:
            raise invalid_request("id must be a string or an integer of at most 64 bits")
    try:
        return _open_one(headers, parsed, request_id, body, is_response=is_response)
    except ProtocolError as error:
        raise error.with_id(request_id) from None


def _open_one(
    headers: Headers,
    message: dict[str, Any],
    request_id: RequestId,
    body: bytes,
    *,
    is_response: bool,
) -> Exchange:
    if message.get("jsonrpc") != "2.0":
        raise invalid_request('jsonrpc must be "2.0"')
    if is_response:
        raise invalid_request(
            "Responses are not accepted: in this revision the server sends no requests"
        )
    method = message.get("method")
    if type(method) is not str:
        raise invalid_request("method must be a string")
    if request_id is None and not method.startswith(_NOTIFICATIONS):
        raise invalid_request(f"id is missing: {shown(method)} is not a notification")
    params = message.get("params", {})
    if type(params) is not dict:
        check_type("params", params, dict)
    check_depth(message, body)
    if MANY_DIGITS in body.translate(
        AS_ZEROS
    ):  # without a call of ours, as this is the way of each request
        check_numbers(body)
    meta = params.get("_meta", {})
    if type(meta) is not dict:
        check_type(_META, meta, dict)
    if request_id is None:
        return _open_notification(headers, method, params, meta)
    return _open_request(headers, request_id, method, params, meta)


def _open_notification(
    headers: Headers, method: str, params: dict[str, Any], meta: dict[str, Any]
) -> Exchange:
    """Open a notification. The revision requires no headers: only the headers that were sent must
    match."""
    # Without a version in `_meta`, the header has one: else the message is legacy.
    version = headers.get("mcp-protocol-version") or ""
    if PROTOCOL_VERSION_META_KEY in meta:
        version = required(meta, PROTOCOL_VERSION_META_KEY, str, _META)
    if headers.count("mcp-protocol-version") > 0:
        check_version(headers, version)
    if version != REVISION:
        raise unsupported_version(version, _HINTS.get(version, ""))
    if headers.count("mcp-method") > 0:
        check_method(headers, method)
    return Exchange(None, method, params, read_meta(meta), Era.MODERN, version)


def _open_request(
    headers: Headers,
    request_id: str | int,
    method: str,
    params: dict[str, Any],
    meta: dict[str, Any],
) -> Exchange:
    version = meta.get(PROTOCOL_VERSION_META_KEY)
    if type(version) is not str:
        version = required(meta, PROTOCOL_VERSION_META_KEY, str, _META)
    if type(meta.get(CLIENT_CAPABILITIES_META_KEY)) is not dict:
        required(meta, CLIENT_CAPABILITIES_META_KEY, dict, _META)
    field = NAME_FIELDS.get(method)
    mirrored = {b"mcp-protocol-version": version, b"mcp-method": method}
    if field is not None:
        mirrored[b"mcp-name"] = params.get(field)
    if version != REVISION or not headers.equal(mirrored):
        # Some header is encoded, or something is wrong: the order decides what the client is sent.
        check_version(headers, version)
        if version != REVISION:
            raise unsupported_version(version, _HINTS.get(version, ""))
        check_method(headers, method)
        if field is not None:
            name = required(params, field, str, "params")
            if method not in tasks.METHODS or headers.count("mcp-name"):
                check_name(headers, field, name)
    opened = read_meta(meta)
    check_params(method, params)
    return Exchange(request_id, method, params, opened, Era.MODERN, version)
