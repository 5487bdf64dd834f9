"""Any input is either opened or refused with a ProtocolError; no other exception is raised."""

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp_types.methods import CLIENT_REQUESTS

from mcphost.protocol.errors import HTTP_STATUS, ProtocolError
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.messages import error_response
from mcphost.protocol.opening import open_post
from tests.protocol.requests import (
    CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    META,
    REVISION,
    VERSION,
    call,
    headers_of,
)
from tests.wire import check_message

METHODS = sorted(method for method, version in CLIENT_REQUESTS if version == REVISION)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
RAW_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-param-x", b"accept"]
        ),
        st.sampled_from([b"2026-07-28", b"2025-11-25", b"tools/call", b"echo"]) | st.binary(),
    )
)


def members(names: list[str], values: st.SearchStrategy) -> st.SearchStrategy:
    """Generate objects that have some of the members, and perhaps one more."""
    known = st.fixed_dictionaries({}, optional=dict.fromkeys(names, values))
    return st.builds(
        lambda some, more: {**more, **some}, known, st.dictionaries(st.text(), JSON, max_size=1)
    )


ANSWERS = JSON | st.sampled_from([{"action": "accept", "content": {"a": "b"}}, {"roots": []}])
FIELDS = {
    "name": JSON,
    "uri": JSON,
    "cursor": JSON,
    "arguments": JSON | st.dictionaries(st.text(), st.text()),
    "requestState": JSON,
    "inputResponses": JSON | st.dictionaries(st.text(), ANSWERS, max_size=2),
    "notifications": JSON | members(["toolsListChanged", "resourceSubscriptions"], JSON),
    "ref": JSON | st.just({"type": "ref/prompt", "name": "p"}),
    "argument": JSON | st.just({"name": "a", "value": "b"}),
}
EXTRA_META = {
    CLIENT_INFO: JSON | members(["name", "version"], st.text()),
    CAPABILITIES: JSON | members(["roots", "sampling", "elicitation", "extensions"], JSON),
    LOG_LEVEL: JSON | st.sampled_from(["info", "error"]),
    VERSION: JSON | st.sampled_from([REVISION, "2025-11-25"]),
    "progressToken": JSON,
    "traceparent": JSON,
}
METAS = JSON | st.builds(
    lambda changes: {**META, **changes}, st.fixed_dictionaries({}, optional=EXTRA_META)
)
PARAMS = JSON | st.builds(
    lambda fields, meta: {"name": "echo", "uri": "a:b", **fields, "_meta": meta},
    st.fixed_dictionaries({}, optional=FIELDS),
    METAS,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers(0, 9) | JSON,
        "method": st.sampled_from([*METHODS, "notifications/cancelled", "initialize"]) | JSON,
        "params": PARAMS,
        "result": JSON,
        "error": JSON,
    },
)
SOUND_PARAMS = st.builds(
    lambda fields, meta: {"name": "echo", "uri": "a:b", **fields, "_meta": {**META, **meta}},
    st.fixed_dictionaries({}, optional=FIELDS),
    st.fixed_dictionaries({}, optional={**EXTRA_META, VERSION: st.just(REVISION)}),
)


def modern(pairs: list[tuple[bytes, bytes]]) -> Headers:
    """Return headers that are not those of a session-based client, whatever else they are."""
    return Headers([*pairs, (b"mcp-protocol-version", REVISION.encode())])


def outcome(headers: Headers, body: bytes) -> Exchange | ProtocolError:
    """Return the result of opening; any other exception fails the test."""
    try:
        opened = open_post(headers, body)
    except ProtocolError as error:
        assert HTTP_STATUS[error.code] < 500
        assert check_message(error_response(error)).get("id") == error.request_id
        return error
    assert isinstance(opened, Exchange)
    return opened


def readable_id(body: bytes) -> str | int | None:
    """Return the id that a response to this body must have."""
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(message, dict):
        return None
    members = {name for name, member in message.items() if member is not None}
    if "method" not in message and ("result" in message or "error" in message):
        return None
    if "method" not in members and ("result" in members or "error" in members):
        return None
    identifier = message.get("id")
    return identifier if type(identifier) in (str, int) else None


@given(RAW_HEADERS, st.binary())
@example([], b"")
def test_any_bytes_are_refused_or_opened(headers, body):
    result = outcome(modern(headers), body)
    if isinstance(result, ProtocolError):
        assert result.request_id == readable_id(body)


@pytest.mark.requirement("base.error-id")
@given(st.data(), MESSAGES)
def test_any_message_is_refused_or_opened_with_its_id(data, message):
    headers = data.draw(st.just(headers_of(message)) | RAW_HEADERS.map(modern))
    body = orjson.dumps(message)
    result = outcome(headers, body)
    if isinstance(result, ProtocolError):
        assert result.request_id == readable_id(body)
    else:
        assert result.id == readable_id(body)
        assert result.method == message["method"]


@given(st.integers(0, 400), st.binary(max_size=4))
def test_a_call_with_some_bytes_changed_is_refused_or_opened(at, patch):
    body = orjson.dumps(call())
    spoiled = body[:at] + patch + body[at + len(patch) :]
    result = outcome(headers_of(call()), spoiled)
    if isinstance(result, ProtocolError):
        assert result.request_id == readable_id(spoiled)


@given(st.sampled_from(METHODS), SOUND_PARAMS)
def test_opened_messages_are_valid_by_the_wire_types(method, params):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    result = outcome(headers_of(message), orjson.dumps(message))
    model = CLIENT_REQUESTS[method, REVISION]
    if isinstance(result, Exchange):
        taken = {
            **message,
            "params": result.params,
        }  # without members that are written but left out
        model.model_validate_json(orjson.dumps(taken), strict=True, by_name=False)
