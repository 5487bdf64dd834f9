"""From headers and a body to an `Exchange`, or to the error that answers it.

The order of the checks is part of the behaviour: a client that speaks another revision must hear
so before it hears that something else of it is wrong.

1. the body is JSON, one object, a request or a notification, nested at most 64 deep
2. its era: `open_post` hands a legacy one to `legacy.opening`, `open_message` ends it
3. `_meta` has what every modern request must carry
4. `MCP-Protocol-Version` says what `_meta` says
5. the version is one of ours
6. `Mcp-Method` and `Mcp-Name` say what the body says
7. the rest of `_meta`, and the params of methods that the revision defines

Spec: basic/index, basic/versioning, basic/transports/streamable-http.
"""

from typing import Any, Final

import orjson
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from mcphost.protocol.eras import SUPPORTED, UNNAMED_REVISION, Era, era_of
from mcphost.protocol.errors import (
    PARSE_ERROR,
    ProtocolError,
    invalid_request,
    shown,
    unsupported_version,
)
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers, check_method, check_name, check_version
from mcphost.protocol.legacy.errors import in_post
from mcphost.protocol.legacy.opening import LegacyBody, open_body
from mcphost.protocol.nesting import check_depth
from mcphost.protocol.params import NAME_FIELDS, check_params, check_type, read_meta, required

_NOTIFICATIONS: Final = "notifications/"
_META: Final = "params._meta"

RequestId = str | int | None


def open_post(headers: Headers, body: bytes) -> Exchange | LegacyBody:
    """Open one POST body of a client of any revision.

    It is a legacy one if its `_meta` names no version and its header none or one before 2026.
    Raises ProtocolError as `open_message` does, and SessionError for a legacy client.
    """
    try:
        parsed = _parse(body)
    except ProtocolError as error:
        raise _unread(headers, error) from None
    try:
        modern = PROTOCOL_VERSION_META_KEY in parsed["params"]["_meta"]
    except (KeyError, TypeError):
        modern = False
    if not modern:
        version = headers.get("mcp-protocol-version")
        if era_of(version) is Era.LEGACY:
            return open_body(version, parsed, body)
    return _open(headers, parsed, body)


def open_message(headers: Headers, body: bytes) -> Exchange:
    """Open one POST body of a client of the stateless revision; any other is told so.

    Raises ProtocolError, with the request's id wherever one could be read. It never carries the
    id of a response: that is one of ours, and the client would take the error for an answer to
    its own.
    """
    return _open(headers, _parse(body), body)


def _unread(headers: Headers, error: ProtocolError) -> ProtocolError:
    """What nobody can read is of the era that its headers name, if any."""
    version = headers.get("mcp-protocol-version")
    names_one = version is not None or headers.count("mcp-session-id") > 0
    return in_post(error, version) if names_one and era_of(version) is Era.LEGACY else error


def _parse(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProtocolError(PARSE_ERROR, f"The body is not valid JSON: {error}") from None


def _open(headers: Headers, parsed: Any, body: bytes) -> Exchange:
    if type(parsed) is not dict:
        raise _no_message(parsed)
    request_id = _read_id(parsed)
    try:
        return _open_one(headers, parsed, request_id, body)
    except ProtocolError as error:
        raise error.with_id(request_id) from None


def _no_message(parsed: Any) -> ProtocolError:
    if type(parsed) is list:
        return invalid_request("Batches are not supported: send one message per POST")
    return invalid_request("The body must be a JSON object: one request or notification")


def _read_id(message: dict[str, Any]) -> RequestId:
    if "id" not in message or ("method" not in message and _is_response(message)):
        return None
    request_id = message["id"]
    if type(request_id) is str or type(request_id) is int:
        return request_id
    raise invalid_request("id must be a string or an integer of at most 64 bits")


def _open_one(
    headers: Headers, message: dict[str, Any], request_id: RequestId, body: bytes
) -> Exchange:
    method = _check_shape(message, request_id)
    params = message.get("params", {})
    check_type("params", params, dict)
    check_depth(message, body)
    meta = params.get("_meta", {})
    check_type(_META, meta, dict)
    if PROTOCOL_VERSION_META_KEY not in meta:
        _check_era(headers, params)
    if request_id is None:
        return _open_notification(headers, method, params, meta)
    return _open_request(headers, request_id, method, params, meta)


def _check_shape(message: dict[str, Any], request_id: RequestId) -> str:
    """The method of a message that is a JSON-RPC request or notification."""
    if message.get("jsonrpc") != "2.0":
        raise invalid_request('jsonrpc must be "2.0"')
    if "method" not in message and _is_response(message):
        raise invalid_request("Responses are not taken: this revision sends no requests")
    method = message.get("method")
    if type(method) is not str:
        raise invalid_request("method must be a string")
    if request_id is None and not method.startswith(_NOTIFICATIONS):
        raise invalid_request(f"id is missing: {shown(method)} is not a notification")
    return method


def _is_response(message: dict[str, Any]) -> bool:
    """Whether a message without a method, for which nobody asks else, is a response."""
    return "result" in message or "error" in message


def _check_era(headers: Headers, params: dict[str, Any]) -> None:
    """End what a legacy client sent, by the name of the version that it wanted."""
    header = headers.get("mcp-protocol-version")
    if era_of(header) is Era.MODERN:
        return
    requested = params.get("protocolVersion")  # `initialize` has it, and sends no header
    if type(requested) is not str:
        requested = header or UNNAMED_REVISION
    raise unsupported_version(requested)


def _open_notification(
    headers: Headers, method: str, params: dict[str, Any], meta: dict[str, Any]
) -> Exchange:
    """The revision demands no headers of notifications: only those that were sent must fit."""
    sent = headers.count("mcp-protocol-version") > 0
    if PROTOCOL_VERSION_META_KEY in meta or not sent:
        version = required(meta, PROTOCOL_VERSION_META_KEY, str, _META)
    else:
        version = headers.get("mcp-protocol-version") or ""
    if sent:
        check_version(headers, version)
    _check_supported(version)
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
    version: str = required(meta, PROTOCOL_VERSION_META_KEY, str, _META)
    required(meta, CLIENT_CAPABILITIES_META_KEY, dict, _META)
    check_version(headers, version)
    _check_supported(version)
    check_method(headers, method)
    if method in NAME_FIELDS:
        field = NAME_FIELDS[method]
        check_name(headers, field, required(params, field, str, "params"))
    opened = read_meta(meta)
    check_params(method, params)
    return Exchange(request_id, method, params, opened, Era.MODERN, version)


def _check_supported(version: str) -> None:
    if version not in SUPPORTED:
        raise unsupported_version(version)
