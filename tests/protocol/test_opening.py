"""Tests of opening a message: what is accepted, what is refused, and in which order."""

import itertools

import orjson
import pytest

from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.nesting import MAX_DEPTH
from mcphost.protocol.opening import open_post
from mcphost.protocol.revisions import SUPPORTED, Era
from tests.protocol.requests import (
    ABSENT,
    CAPABILITIES,
    META,
    REVISION,
    VERSION,
    call,
    changed,
    headers_of,
    opened,
    request,
    with_meta,
)

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
HEADER_MISMATCH, UNSUPPORTED = -32020, -32022


def refused(message, **headers) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        opened(message, **headers)
    assert 400 <= caught.value.status < 500
    return caught.value


def refused_body(body: bytes) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        open_post(headers_of(call()), body)
    assert caught.value.status == 400
    return caught.value


def nested(depth: int) -> dict:
    """A call whose message is `depth` levels deep."""
    value: object = []
    for level in range(depth - 4):
        value = {"a": value} if level % 2 else [value]
    return call(arguments={"deep": value})


# --- accepted messages ---


def test_a_call_opens_with_all_its_values():
    exchange = opened(call())
    assert exchange == Exchange(
        id=7,
        method="tools/call",
        params={"_meta": META, "name": "echo", "arguments": {"text": "hello"}},
        meta=exchange.meta,
        era=Era.MODERN,
        revision=REVISION,
    )
    assert exchange.id is not None


@pytest.mark.requirement("base.request-id")
@pytest.mark.parametrize("identifier", ["a", "", 0, -1, 2**63 - 1, 2**64 - 1])
def test_an_id_is_a_string_or_an_integer(identifier):
    assert opened({**call(), "id": identifier}).id == identifier


# --- not a message ---


def test_white_space_around_a_header_value_is_no_mismatch():
    message = request("tools/list", {"_meta": META})
    headers = {"mcp_protocol_version": f" {REVISION}\t", "mcp_method": " tools/list "}
    assert opened(message, **headers).method == "tools/list"


@pytest.mark.requirement("http.parse-error")
@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"{", b"nul", b"\xff", b'\xef\xbb\xbf{"a":1}', b'{"a":1e999}'],
)
def test_invalid_json_is_a_parse_error_without_an_id(body):
    error = refused_body(body)
    assert (error.code, error.request_id) == (PARSE_ERROR, None)
    assert error.message.startswith("The body is not valid JSON: ")


@pytest.mark.parametrize("body", [b"1", b'"a"', b"null", b"true"])
def test_a_body_that_is_not_an_object_is_an_invalid_request(body):
    error = refused_body(body)
    assert (error.code, error.request_id) == (INVALID_REQUEST, None)
    assert "JSON object" in error.message


@pytest.mark.requirement("http.single-message")
@pytest.mark.parametrize("messages", [[], [call()], [call(), call()]])
def test_a_batch_is_refused_whole(messages):
    error = refused_body(orjson.dumps(messages))
    assert (error.code, error.request_id) == (INVALID_REQUEST, None)
    assert "Batches" in error.message


@pytest.mark.requirement("base.request-id")
@pytest.mark.parametrize(
    "literal",
    [
        b"null",
        b"true",
        b"1e3",
        b"18446744073709551616",
        b"[]",
    ],
)
def test_an_invalid_id_is_refused_and_not_echoed(literal):
    body = orjson.dumps(call()).replace(b'"id":7', b'"id":' + literal)
    error = refused_body(body)
    assert (error.code, error.request_id) == (INVALID_REQUEST, None)
    assert error.message.startswith("id must be")


@pytest.mark.parametrize(
    ("changes", "identifier", "text"),
    [
        *(({"jsonrpc": version}, 7, "jsonrpc") for version in (ABSENT, "1.0", 2, 2.0, None)),
        *(({"method": name}, 7, "method must be a string") for name in (ABSENT, None, 5, ["a"])),
        ({"id": ABSENT}, None, "id is missing: 'tools/call' is not a notification"),
    ],
)
def test_a_message_that_is_not_a_request_is_refused(changes, identifier, text):
    error = refused(changed(call(), changes))
    assert (error.code, error.request_id) == (INVALID_REQUEST, identifier)
    assert text in error.message


@pytest.mark.requirement("http.no-client-responses")
@pytest.mark.parametrize(
    "response",
    [
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "2.0", "result": {}},
    ],
)
def test_a_response_is_refused_without_echoing_its_id(response):
    error = refused(response)
    assert (error.code, error.request_id) == (INVALID_REQUEST, None)
    assert "Responses" in error.message


NO_OBJECT = [([1], "an array"), ("a", "a string"), (1.5, "a number")]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        *((request("tools/call", p), f"params must be an object, not {k}") for p, k in NO_OBJECT),
        *((call(_meta=m), f"params._meta must be an object, not {k}") for m, k in NO_OBJECT),
        *((call(name=n), "params.name must be a string, ") for n in (ABSENT, None, 5, ["echo"])),
    ],
)
def test_params_of_a_wrong_shape_are_refused(message, text):
    error = refused(message)
    assert (error.code, error.request_id) == (INVALID_PARAMS, 7)
    assert error.message.startswith(text)


# --- depth ---


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 200])
def test_a_message_nested_too_deeply_is_refused_with_its_id(depth):
    error = refused(nested(depth))
    assert (error.code, error.request_id) == (INVALID_REQUEST, 7)
    assert "64 levels" in error.message


# --- eras ---


@pytest.mark.parametrize("header", [REVISION, "v999.0.0", "2027-01-01"])
def test_a_modern_header_without_meta_is_refused_as_a_modern_request(header):
    error = refused(call(_meta=ABSENT), mcp_protocol_version=header)
    assert (error.code, error.status, error.request_id) == (INVALID_PARAMS, 400, 7)
    assert VERSION in error.message


# --- meta and headers ---


@pytest.mark.requirement("base.meta-required")
@pytest.mark.parametrize("field", [VERSION, CAPABILITIES])
@pytest.mark.parametrize("value", [ABSENT, 20260728, None, [1]])
def test_a_missing_or_mistyped_required_meta_field_is_named_in_the_error(field, value):
    error = refused(with_meta(**{field: value}))
    assert (error.code, error.status, error.request_id) == (INVALID_PARAMS, 400, 7)
    assert field in error.message
    assert ("missing" in error.message) is (value is ABSENT)


@pytest.mark.requirement("headers.mismatch")
@pytest.mark.requirement("headers.version-matches")
@pytest.mark.requirement("headers.version-required")
@pytest.mark.requirement("headers.method")
@pytest.mark.parametrize(
    ("name", "header"),
    [
        *(("MCP-Protocol-Version", text) for text in (ABSENT, "2025-11-25", "v999.0.0", "")),
        *(("Mcp-Method", text) for text in (ABSENT, "tools/list", "TOOLS/CALL")),
    ],
)
def test_a_standard_header_that_differs_from_the_body_is_a_mismatch(name, header):
    error = refused(call(), **{name.lower().replace("-", "_"): header})
    assert (error.code, error.status, error.request_id) == (HEADER_MISMATCH, 400, 7)
    assert name in error.message


@pytest.mark.requirement("headers.version-unsupported")
@pytest.mark.requirement("versions.unsupported")
@pytest.mark.parametrize(
    "version",
    [
        "v999.0.0",
        "2025-11-25",
        "2027-01-01",
    ],
)
def test_an_unsupported_version_is_refused_with_the_supported_ones(version):
    error = refused(with_meta(**{VERSION: version}), mcp_protocol_version=version)
    assert (error.code, error.status, error.request_id) == (UNSUPPORTED, 400, 7)
    assert error.data == {"supported": list(SUPPORTED), "requested": version}
    assert error.message.endswith("send initialize first") is (version in SUPPORTED)


@pytest.mark.requirement("headers.mismatch")
@pytest.mark.requirement("headers.name")
@pytest.mark.parametrize(
    ("method", "field"),
    [
        *(("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")),
        *((f"tasks/{method}", "taskId") for method in ("get", "update", "cancel")),
    ],
)
def test_a_name_header_that_differs_from_the_params_is_a_mismatch(method, field):
    message = request(method, {"_meta": META, field: "x:y", "inputResponses": {}})
    assert opened(message).params[field] == "x:y"
    if field == "taskId":  # its header may be left out
        assert opened(message, mcp_name=ABSENT).params[field] == "x:y"
    for header in ("other",) if field == "taskId" else (ABSENT, "other"):
        error = refused(message, mcp_name=header)
        assert (error.code, error.request_id) == (HEADER_MISMATCH, 7)
        assert "Mcp-Name" in error.message


# --- the order ---

STEPS = [
    ("depth", INVALID_REQUEST, "levels"),
    ("meta", INVALID_PARAMS, CAPABILITIES),
    ("header", HEADER_MISMATCH, "MCP-Protocol-Version"),
    ("version", UNSUPPORTED, "v999.0.0"),
    ("method", HEADER_MISMATCH, "Mcp-Method"),
    ("rest", INVALID_PARAMS, "progressToken"),
]


def spoiled(steps: list[str]) -> ProtocolError:
    """Build a call with several errors at once."""
    version = "v999.0.0" if "version" in steps else REVISION
    meta = {VERSION: version, "progressToken": [] if "rest" in steps else 1}
    meta[CAPABILITIES] = [1] if "meta" in steps else {}
    message = nested(MAX_DEPTH + 1) if "depth" in steps else call()
    message["params"]["_meta"] = {**META, **meta}
    return refused(
        message,
        mcp_protocol_version="other" if "header" in steps else version,
        mcp_method="tools/list" if "method" in steps else "tools/call",
    )


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(STEPS, 2)), ids=str)
def test_the_earlier_check_determines_the_error_of_two_mistakes(first, second):
    error = spoiled([first[0], second[0]])
    assert error.code == first[1]
    assert first[2] in error.message


# --- notifications ---


def notification(**params) -> dict:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def test_a_notification_has_no_id():
    exchange = opened(notification(requestId=1))
    assert exchange.id is None
    assert (exchange.method, exchange.revision) == ("notifications/cancelled", REVISION)
    assert exchange.params == {"requestId": 1}


def test_a_notification_needs_no_params_and_its_version_only_in_header_or_meta():
    message = changed(notification(), {"params": ABSENT})
    assert opened(message, mcp_method=ABSENT).params == {}
    message = notification(_meta={VERSION: REVISION})
    assert opened(message, mcp_protocol_version=ABSENT, mcp_method=ABSENT).revision == REVISION


@pytest.mark.requirement("http.notification-refused")
@pytest.mark.parametrize(
    ("meta", "headers", "code"),
    [
        ({VERSION: REVISION}, {"mcp_protocol_version": "2025-11-25"}, HEADER_MISMATCH),
        ({VERSION: "v9"}, {"mcp_protocol_version": "v9"}, UNSUPPORTED),
        ({}, {"mcp_protocol_version": "v9"}, UNSUPPORTED),
        ({VERSION: 5}, {}, INVALID_PARAMS),
        ({}, {"mcp_method": "tools/call"}, HEADER_MISMATCH),
        ({"progressToken": []}, {}, INVALID_PARAMS),
    ],
)
def test_a_self_contradicting_notification_is_refused_without_an_id(meta, headers, code):
    error = refused(notification(_meta=meta), **headers)
    assert (error.code, error.request_id) == (code, None)


def test_a_version_header_sent_twice_is_refused():
    raw = [(b"mcp-protocol-version", REVISION.encode())] * 2
    for message in (call(), notification(_meta={VERSION: REVISION})):
        with pytest.raises(ProtocolError) as caught:
            open_post(Headers(raw), orjson.dumps(message))
        assert caught.value.code == HEADER_MISMATCH
