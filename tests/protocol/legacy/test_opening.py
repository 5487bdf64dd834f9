"""Tests of the era of a POST, and of the messages and errors of session-based clients."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.legacy.errors import SessionError
from mcphost.protocol.legacy.opening import (
    MAX_IN_A_BATCH,
    LegacyBody,
    LegacyNotification,
    LegacyRequest,
    LegacyResponse,
    fitting,
)
from mcphost.protocol.messages import error_response
from mcphost.protocol.nesting import MAX_DEPTH
from mcphost.protocol.opening import open_post
from mcphost.protocol.revisions import REVISIONS
from tests.protocol.requests import META, REVISION, call, changed, headers_of, raw, request
from tests.wire import SESSION_BASED, check_message

INVALID_REQUEST, INVALID_PARAMS = -32600, -32602
OLDEST, FIRST, SECOND, LAST = SESSION_BASED
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
REPLY = {"jsonrpc": "2.0", "id": "q", "result": {}}


def posted(message, version: str | None = LAST) -> LegacyBody:
    headers = raw({} if version is None else {"mcp-protocol-version": version})
    body = message if isinstance(message, bytes) else orjson.dumps(message)
    opened = open_post(headers, body)
    assert isinstance(opened, LegacyBody)
    return opened


def refused(message, version: str | None = LAST) -> SessionError:
    with pytest.raises(SessionError) as caught:
        posted(message, version)
    return caught.value


def numbered(count: int) -> list[dict]:
    return [{**LIST, "id": number} for number in range(count)]


def nested(depth: int) -> dict:
    """A call whose message is `depth` levels deep."""
    value: object = []
    for _ in range(depth - 4):
        value = [value]
    return request("tools/call", {"name": "echo", "arguments": {"deep": value}})


# --- eras ---


def initialize(version: str = LAST) -> dict:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {}}
    return request("initialize", params)


@pytest.mark.parametrize(
    ("message", "header"),
    [
        (initialize(), None),
        (initialize("2024-11-05"), None),
        (initialize("1.0"), "2024-11-05"),
        (call(_meta={"progressToken": 1}), SECOND),
        (LIST, FIRST),
        (NOTE, LAST),
        ([LIST], None),
    ],
)
def test_a_post_without_a_modern_version_in_meta_or_header_belongs_to_a_session(message, header):
    opened = posted(message, header)
    assert len(opened.messages) == 1
    assert opened.version == header


@pytest.mark.parametrize(
    ("message", "header"),
    [
        (call(), REVISION),
        (call(), LAST),
        (call(_meta={}), REVISION),
        (call(_meta={}), "v999.0.0"),
        ([call()], REVISION),
        (REPLY, REVISION),
        (request("initialize", {"_meta": META}), REVISION),
    ],
)
def test_every_other_post_belongs_to_a_modern_client(message, header):
    headers = headers_of(message if isinstance(message, dict) else call())
    if header != REVISION:
        pairs = {"mcp-method": "tools/call", "mcp-name": "echo"}
        headers = raw(pairs if header is None else {**pairs, "mcp-protocol-version": header})
    try:
        opened = open_post(headers, orjson.dumps(message))
    except ProtocolError as error:
        assert not isinstance(error, SessionError)
    else:
        assert isinstance(opened, Exchange)


def test_invalid_json_is_refused_with_400_in_every_revision():
    for version in (None, LAST, REVISION):
        headers = raw({} if version is None else {"mcp-protocol-version": version})
        with pytest.raises(ProtocolError, match="not valid JSON") as caught:
            open_post(headers, b"{")
        assert caught.value.status == 400
        assert isinstance(caught.value, SessionError) is (version == LAST)


# --- accepted messages ---


def test_a_request_is_read_with_its_meta():
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    message = call(_meta={"progressToken": "p", "traceparent": trace, "x.org/y": 1})
    (one,) = posted(message).messages
    assert one == LegacyRequest(7, "tools/call", message["params"], one.meta)
    assert one.meta == Meta(progress_token="p", traceparent=trace)
    assert not posted(message).batch


def test_a_response_is_a_result_or_an_error():
    assert posted(REPLY).messages == (LegacyResponse("q", {}, None),)
    wrong = {"code": -1, "message": "User rejected sampling request"}
    response = {"jsonrpc": "2.0", "id": 3, "error": wrong}
    assert posted(response).messages == (LegacyResponse(3, None, wrong),)


# --- refused messages ---


@pytest.mark.parametrize("identifier", [7, "a"])
@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"jsonrpc": "1.0"}, INVALID_REQUEST, 'jsonrpc must be "2.0"'),
        ({"method": "notifications/initialized"}, INVALID_REQUEST, "has no id"),
        ({"params": {"_meta": 1}}, INVALID_PARAMS, "params._meta must be an object"),
        ({"params": {"_meta": {"progressToken": 1.5}}}, INVALID_PARAMS, "progressToken"),
        (nested(MAX_DEPTH + 1), INVALID_REQUEST, "64 levels"),
    ],
)
def test_a_malformed_request_is_refused_with_its_id_and_status_200(identifier, changes, code, text):
    error = refused({**LIST, **changes, "id": identifier})
    assert (error.code, error.status, error.request_id) == (code, 200, identifier)
    assert text in error.message
    check_message(error_response(error), revision=FIRST)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"7", "must be a JSON object"),
        ([], "at least one"),
        ([[]], "JSON-RPC messages only"),
        (numbered(MAX_IN_A_BATCH + 1), "at most 20"),
        ([LIST, LIST], "the same id"),
        ([LIST, changed(LIST, {"id": None})], "id must be"),
        ([nested(MAX_DEPTH + 1)], "64 levels"),
        ({**LIST, "id": None}, "id must be a string or an integer"),
        ({**LIST, "id": True}, "id must be a string or an integer"),
        ({"jsonrpc": "2.0", "method": "tools/list"}, "'tools/list' is not a notification"),
        ({"jsonrpc": "2.0", "id": 1}, "method is missing"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, "not both"),
        ({"jsonrpc": "2.0", "id": 1, "result": [1]}, "result must be an object"),
        ({"jsonrpc": "2.0", "id": 1, "error": "no"}, "error must be an object"),
    ],
)
def test_a_malformed_message_without_an_id_is_refused_with_status_400(message, text):
    error = refused(message)
    assert (error.status, error.request_id) == (400, None)
    assert text in error.message


@pytest.mark.requirement("versions.named-to-legacy-clients")
@pytest.mark.parametrize("version", ["2024-10-07", "2025-12-31"])
@pytest.mark.parametrize(
    ("message", "identifier"),
    [(LIST, 1), ([LIST], None), ({"jsonrpc": "2.0", "id": 1, "result": {}}, None)],
)
def test_an_unknown_revision_in_the_header_is_refused_with_400_and_the_supported_ones(
    version, message, identifier
):
    error = refused(message, version)
    assert (error.code, error.status, error.request_id) == (INVALID_PARAMS, 400, identifier)
    assert error.data == {"supported": [*SESSION_BASED, REVISION], "requested": version}
    supported = ", ".join([*SESSION_BASED, REVISION])
    assert error.message == f"Unsupported protocol version '{version}'; supported: {supported}"


# --- batches ---


def test_the_messages_of_a_batch_are_read_in_order():
    opened = posted([LIST, NOTE, REPLY, {**LIST, "id": "1"}], FIRST)
    types = [LegacyRequest, LegacyNotification, LegacyResponse, LegacyRequest]
    assert [type(one) for one in opened.messages] == types
    assert [one.id for one in opened.requests] == [1, "1"]
    assert (opened.batch, opened.refused) == (True, ())
    assert len(posted(numbered(MAX_IN_A_BATCH), FIRST).messages) == MAX_IN_A_BATCH


def test_only_the_bad_request_of_a_batch_is_refused():
    opened = posted([LIST, {**LIST, "id": 2, "params": 5}, {**initialize(), "id": 3}], FIRST)
    assert [one.id for one in opened.requests] == [1]
    assert [(one.request_id, one.status) for one in opened.refused] == [(2, 200), (3, 200)]
    assert "params must be an object" in opened.refused[0].message
    assert "initialize is sent alone" in opened.refused[1].message
    assert posted([{**LIST, "params": 5}], FIRST).messages == ()


@pytest.mark.parametrize("revision", SESSION_BASED)
def test_only_the_first_revision_has_batches(revision):
    assert fitting(posted(LIST), REVISIONS[revision]) == posted(LIST)
    if REVISIONS[revision].batches:
        assert fitting(posted([LIST]), REVISIONS[revision]) == posted([LIST])
        return
    with pytest.raises(SessionError, match=f"Revision {revision} has no batches") as caught:
        fitting(posted([LIST]), REVISIONS[revision])
    assert caught.value.status == 400


# --- params ---

NAMELESS = {"ref": {"type": "ref/prompt"}, "argument": {"name": "a", "value": ""}}


@pytest.mark.parametrize("revision", SESSION_BASED)
@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("tools/call", {}, "params.name must be a string, but is missing"),
        ("tools/call", {"name": "echo", "arguments": [1]}, "params.arguments must be an object"),
        ("prompts/get", {"name": "x", "arguments": {"a": 1}}, "params.arguments.a"),
        ("completion/complete", NAMELESS, "params.ref.name"),
    ],
)
def test_params_are_validated_per_method_in_every_revision(revision, method, params, text):
    with pytest.raises(SessionError, match=text) as caught:
        fitting(posted({**LIST, "method": method, "params": params}), REVISIONS[revision])
    assert (caught.value.code, caught.value.status) == (INVALID_PARAMS, 200)
    assert caught.value.request_id == 1


@pytest.mark.parametrize("revision", SESSION_BASED)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_methods_of_the_tasks_extension_are_unknown_in_a_session(revision, method):
    message = {**LIST, "method": method, "params": {"inputResponses": 5}}
    (one,) = fitting(posted(message), REVISIONS[revision]).requests
    assert one.method == method


def test_only_the_request_of_a_batch_with_invalid_params_is_refused():
    wrong = {**LIST, "id": 2, "params": {"cursor": 5}}
    opened = fitting(posted([LIST, wrong, NOTE], FIRST), REVISIONS[FIRST])
    assert [type(one) for one in opened.messages] == [LegacyRequest, LegacyNotification]
    assert [one.request_id for one in opened.refused] == [2]


def test_request_state_and_input_responses_are_ignored_in_a_session():
    (one,) = posted(call(_meta={}, requestState="mcps1.x", inputResponses={"a": 5})).requests
    assert one.params == posted(call(_meta={})).requests[0].params


# --- arbitrary values ---

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers(0, 3) | st.text(max_size=2) | JSON,
        "method": st.sampled_from(["tools/list", "initialize", "notifications/x"]) | JSON,
        "params": st.fixed_dictionaries({}, optional={"_meta": JSON}) | JSON,
        "result": st.just({}) | JSON,
        "error": st.just({}) | JSON,
    },
)


@given(MEMBERS | JSON | st.lists(MEMBERS, max_size=4), st.sampled_from([None, *SESSION_BASED]))
def test_any_message_is_read_or_refused_with_a_status_that_clients_survive(parsed, version):
    try:
        opened = posted(orjson.dumps(parsed), version)
    except TypeError:  # an integer beyond 64 bits, which clients cannot send either
        return
    except SessionError as error:
        assert error.status == (400 if error.request_id is None else 200)
        return
    assert len(opened.messages) + len(opened.refused) == (len(parsed) if opened.batch else 1)
