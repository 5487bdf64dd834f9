"""Tests of headers: reading, decoding, and comparison with the body."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.errors import HEADER_MISMATCH, ProtocolError
from mcphost.protocol.headers import (
    MAX_SAFE_INTEGER,
    Headers,
    check_method,
    check_name,
    check_param_headers,
    check_version,
    decode_value,
)
from mcphost.protocol.schemas import ParamHeader
from tests.protocol.requests import raw

REGION = ParamHeader(("region",), "Region", "string")
COUNT = ParamHeader(("count",), "Count", "integer")
FLAG = ParamHeader(("flag",), "Flag", "boolean")


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def refusal(check, *arguments) -> str:
    with pytest.raises(ProtocolError) as caught:
        check(*arguments)
    assert caught.value.code == HEADER_MISMATCH
    return caught.value.message


# --- reading ---


# --- decoding ---


@pytest.mark.requirement("headers.base64")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("us-west1", "us-west1"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?bGluZTEKbGluZTI=?=", "line1\nline2"),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("=?base64?=", "=?base64?="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
    ],
)
def test_header_values_are_decoded_as_the_specification_requires(value, text):
    assert decode_value(value) == text


@pytest.mark.requirement("headers.base64")
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("=?base64?SGVsbG8?=", "not valid Base64"),
        ("=?base64?SGVs!!!bG8=?=", "not valid Base64"),
        ("=?base64?SGVsbG9=?=", "not canonical Base64"),
        ("=?base64?/w==?=", "not UTF-8"),
    ],
)
def test_a_badly_encoded_value_is_refused(value, problem):
    with pytest.raises(ValueError, match=problem):
        decode_value(value)


@given(st.text())
def test_encoded_header_values_decode_to_the_original_text(text):
    assert decode_value(encoded(text)) == text


# --- the standard headers ---


@pytest.mark.requirement("headers.name")
@pytest.mark.requirement("headers.method")
@pytest.mark.requirement("headers.version-required")
def test_a_missing_standard_header_is_named_in_the_error():
    assert "MCP-Protocol-Version is missing" in refusal(check_version, raw({}), "2026-07-28")
    assert "Mcp-Method is missing" in refusal(check_method, raw({}), "tools/call")
    assert "Mcp-Name is missing" in refusal(check_name, raw({}), "name", "echo")


@pytest.mark.requirement("headers.mismatch")
def test_a_mismatch_error_quotes_the_header_and_the_body():
    message = refusal(check_method, raw({"mcp-method": "tools/list"}), "tools/call")
    assert message == "Header mismatch: Mcp-Method is 'tools/list', but method is 'tools/call'"
    message = refusal(check_name, raw({"mcp-name": "foo"}), "uri", "bar")
    assert message == "Header mismatch: Mcp-Name is 'foo', but params.uri is 'bar'"


@pytest.mark.requirement("headers.case-insensitive-names")
@pytest.mark.parametrize("value", ["Tools/call", encoded("tools/call")])
def test_a_method_is_case_sensitive_and_never_encoded(value):
    refusal(check_method, raw({"mcp-method": value}), "tools/call")


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (lambda headers: check_version(headers, "same"), "mcp-protocol-version"),
        (lambda headers: check_method(headers, "same"), "mcp-method"),
        (lambda headers: check_name(headers, "name", "same"), "mcp-name"),
        (
            lambda headers: check_param_headers(headers, [REGION], {"region": "same"}),
            "mcp-param-region",
        ),
    ],
)
def test_a_header_sent_twice_is_refused_even_if_both_agree(check, name):
    pair = (name.encode(), b"same")
    assert "more than once" in refusal(check, Headers([pair, pair]))
    check(Headers([(b"accept", b"a"), (b"accept", b"b"), pair]))


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("  echo ", "echo"),
        (encoded("wetter in köln"), "wetter in köln"),
        ("my\tvery tool", "my\tvery tool"),
    ],
)
def test_a_name_may_be_encoded_and_have_spaces(header, name):
    check_name(raw({"mcp-name": header}), "name", name)


@pytest.mark.parametrize("value", [b"\xe9", b"a\x7fb", b"a\x00b", "köln".encode()])
def test_a_header_with_forbidden_characters_is_refused(value):
    headers = Headers([(b"mcp-name", value)])
    assert "characters" in refusal(check_name, headers, "name", value.decode("latin-1"))


# --- headers from arguments ---


@pytest.mark.requirement("headers.param-matches")
@pytest.mark.parametrize(
    ("body", "header"),
    [
        ("Hello", "=?base64?SGVsbG8=?="),
        ("SGVsbG8=", "SGVsbG8="),
        ("", ""),
    ],
)
def test_a_mirrored_text_is_accepted(body, header):
    check_param_headers(raw({"mcp-param-region": header}), [REGION], {"region": body})


@pytest.mark.requirement("headers.param-missing")
@pytest.mark.requirement("headers.param-matches")
@pytest.mark.parametrize(
    ("body", "header"),
    [
        ("Hello", "=?base64?SGVsbG8?="),
        ("test-value", None),
        ("a", "b"),
        (None, "a"),
        ({"a": 1}, "a"),
    ],
)
def test_a_header_that_does_not_mirror_the_text_is_refused(body, header):
    headers = raw({} if header is None else {"mcp-param-region": header})
    message = refusal(check_param_headers, headers, [REGION], {"region": body})
    assert "Mcp-Param-Region" in message


@pytest.mark.requirement("headers.param-absent")
@pytest.mark.parametrize("arguments", [{}, {"region": None}])
def test_an_argument_without_a_value_needs_no_header(arguments):
    check_param_headers(raw({}), [REGION], arguments)
    headers = raw({"mcp-param-region": "x"})
    assert "has no value" in refusal(check_param_headers, headers, [REGION], arguments)


@pytest.mark.requirement("headers.param-integers")
@pytest.mark.parametrize(
    ("body", "header"),
    [
        (42, "42"),
        (42, "42.0"),
        (42.0, "42"),
        (0, "-0"),
        (MAX_SAFE_INTEGER, str(MAX_SAFE_INTEGER)),
        (-MAX_SAFE_INTEGER, str(-MAX_SAFE_INTEGER)),
    ],
)
def test_numbers_are_compared_as_numbers(body, header):
    check_param_headers(raw({"mcp-param-count": header}), [COUNT], {"count": body})


@pytest.mark.parametrize(
    ("body", "header"),
    [
        *((42, text) for text in ("43", None, "0x2a", "4_2", "٤٢", "42.", "NaN", "4.2e1")),
        (0.5, None),
        (42, "9" * 10_000),
        (1, "true"),
        (2**53, str(2**53)),
    ],
)
def test_a_number_header_with_another_or_no_number_is_refused(body, header):
    headers = raw({} if header is None else {"mcp-param-count": header})
    refusal(check_param_headers, headers, [COUNT], {"count": body})


@pytest.mark.parametrize(
    ("body", "header", "fits"),
    [(True, "true", True), (False, "false", True), (True, "True", False), (True, "1", False)],
)
def test_boolean_headers_are_lower_case(body, header, fits):
    arguments = (raw({"mcp-param-flag": header}), [FLAG], {"flag": body})
    if fits:
        check_param_headers(*arguments)
    else:
        refusal(check_param_headers, *arguments)


@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        ({"where": {"region": "bonn"}}, "bonn"),
        ({"where": {}}, None),
        ({"where": "bonn"}, None),
    ],
)
def test_a_mirrored_argument_is_read_at_the_end_of_its_path(arguments, header):
    nested = ParamHeader(("where", "region"), "Region", "string")
    headers = raw({} if header is None else {"mcp-param-region": header})
    check_param_headers(headers, [nested], arguments)


@pytest.mark.requirement("headers.param-characters")
def test_a_mirrored_header_with_bad_characters_is_refused():
    headers = Headers([(b"mcp-param-region", "é".encode())])
    assert "characters" in refusal(check_param_headers, headers, [REGION], {"region": "é"})


@given(st.lists(st.tuples(st.binary(), st.binary())), st.text(), st.text())
def test_header_checks_raise_only_header_mismatch(pairs, name, value):
    headers = Headers([*pairs, (b"mcp-param-region", value.encode("utf-8", "replace"))])
    for check in (
        lambda: check_version(headers, name),
        lambda: check_method(headers, name),
        lambda: check_name(headers, "name", name),
        lambda: check_param_headers(headers, [REGION], {"region": value}),
    ):
        try:
            check()
        except ProtocolError as error:
            assert error.code == HEADER_MISMATCH
