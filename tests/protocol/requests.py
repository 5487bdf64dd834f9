"""Valid requests, for the tests to change."""

from collections.abc import Mapping
from typing import Any

import orjson

from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.opening import open_post
from tests.wire import NAME_PARAMS

REVISION = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"

META: dict[str, Any] = {
    VERSION: REVISION,
    CLIENT_INFO: {"name": "tests", "version": "1"},
    CAPABILITIES: {},
}

ABSENT = object()
"""As a value: leave this member out."""


def changed(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with some values changed, or left out."""
    return {key: value for key, value in {**base, **changes}.items() if value is not ABSENT}


def call(**params: Any) -> dict[str, Any]:
    """Build a `tools/call` of `echo`, with some params changed."""
    base = {"_meta": META, "name": "echo", "arguments": {"text": "hello"}}
    return request("tools/call", changed(base, params))


def request(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def with_meta(**changes: Any) -> dict[str, Any]:
    """Build a `tools/call` with some of its `_meta` changed."""
    return call(_meta=changed(META, changes))


def headers_of(message: Mapping[str, Any], **changes: Any) -> Headers:
    """Return the headers of a message; `mcp_name="x"` changes `mcp-name`."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": REVISION}
    method = message.get("method")
    if isinstance(method, str):
        headers["mcp-method"] = method
    params = message.get("params")
    if isinstance(params, dict):
        name = params.get(NAME_PARAMS.get(str(method), "name"))
        if isinstance(name, str):
            headers["mcp-name"] = name
    names = {key.replace("_", "-"): value for key, value in changes.items()}
    return raw(changed(headers, names))


def raw(headers: Mapping[str, str]) -> Headers:
    return Headers([(name.encode(), value.encode()) for name, value in headers.items()])


def opened(message: Mapping[str, Any], **headers: Any) -> Exchange:
    """Open a message with its headers, some of them changed."""
    exchange = open_post(headers_of(message, **headers), orjson.dumps(message))
    assert isinstance(exchange, Exchange)
    return exchange
