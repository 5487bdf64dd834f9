"""Tests of whole numbers that the parser would change."""

import orjson
import pytest

from mcphost.protocol.errors import INVALID_PARAMS, ProtocolError
from mcphost.protocol.exact_numbers import MAX_SHOWN, changed_number
from mcphost.protocol.legacy.opening import open_body
from mcphost.protocol.opening import open_post
from tests.protocol.requests import call, headers_of

CHANGED = [
    "12345678901234567890123",
    "-12345678901234567890123",
    "18446744073709551617",
    "-9223372036854775809",
    "123456789012345678.0",
    "1234567890123456789012e1",
    "9" * 200,
    "9" * 400,
    "1" + "0" * 400 + "e-1",
]
KEPT = [
    str(2**64 - 1),
    str(-(2**63)),
    "100000000000000000000",  # 1e20 as JavaScript writes it
    "123456789012345680000",
    "1e300",
    "1.7976931348623157e+308",
    "0.1234567890123456789012345",
    "1234567890.12345678901234",
    "12345678901234567e-17",
    "0.00000000000000000000000000001e-999999999999",
    "5.0",
    '"12345678901234567890123"',
    r'"\"12345678901234567890123\\"',
]


@pytest.mark.parametrize("literal", CHANGED)
def test_a_whole_number_that_would_be_changed_is_found_wherever_it_is(literal: str) -> None:
    for text in (literal, f'{{"a\\"": [1, {literal}]}}', f'["{2**80}",{literal}]'):
        assert changed_number(text.encode()) == literal


@pytest.mark.parametrize("literal", KEPT)
def test_what_is_read_as_it_was_written_is_no_changed_number(literal: str) -> None:
    assert not changed_number(f'{{"a": [1, {literal}], "b": {literal}}}'.encode())


def body_with(literal: str, **changes: object) -> bytes:
    whole = orjson.dumps({**call(arguments={"n": "here"}), **changes})
    return whole.replace(b'"here"', literal.encode())


@pytest.mark.parametrize("literal", CHANGED[:5])
def test_a_request_with_a_number_that_would_be_changed_is_refused_with_its_id(literal: str) -> None:
    body = body_with(literal, id=7)
    with pytest.raises(ProtocolError) as modern:
        open_post(headers_of(call()), body)
    with pytest.raises(ProtocolError) as legacy:
        open_body(None, orjson.loads(body), body)
    for error in (modern.value, legacy.value):
        assert (error.code, error.request_id) == (INVALID_PARAMS, 7)
        assert f"The integer {literal} has more than 64 bits" in error.message


def test_a_batch_with_such_a_number_is_refused_whole_and_a_long_one_is_cut() -> None:
    literal = "9" * 200
    body = b"[" + body_with("1", id=1) + b"," + body_with(literal, id=2) + b"]"
    with pytest.raises(ProtocolError, match=f"The integer 9{{{MAX_SHOWN}}}… has"):
        open_body(None, orjson.loads(body), body)


@pytest.mark.parametrize("literal", ["1e400", "9" * 400])
def test_a_number_that_is_no_float_is_a_parse_error(literal: str) -> None:
    with pytest.raises(ProtocolError, match="number is infinity"):
        open_post(headers_of(call()), body_with(literal))
