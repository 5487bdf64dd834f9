"""Tests of ProtocolError and of the table of HTTP statuses."""

import pytest

from mcphost.protocol import errors
from mcphost.protocol.errors import HTTP_STATUS, ProtocolError
from mcphost.protocol.messages import error_response
from tests.wire import ERRORS, check_message

OURS = {code: status for code, status in HTTP_STATUS.items() if code not in ERRORS}


def test_every_code_of_the_specification_has_a_status():
    assert set(HTTP_STATUS) >= set(ERRORS)


@pytest.mark.requirement("base.own-error-codes")
@pytest.mark.parametrize("code", OURS)
def test_the_servers_own_error_codes_lie_outside_the_reserved_range(code):
    assert not -32768 <= code <= -32000


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (errors.PARSE_ERROR, 400),
        (errors.METHOD_NOT_FOUND, 404),
        (errors.HEADER_MISMATCH, 400),
        (errors.UNSUPPORTED_PROTOCOL_VERSION, 400),
        (errors.INTERNAL_ERROR, 200),
        (errors.UNAVAILABLE, 503),
        (4711, 200),
    ],
)
def test_an_error_has_the_http_status_of_its_code(code, status):
    assert ProtocolError(code, "no").status == status


def test_an_error_shows_code_message_and_id():
    error = ProtocolError(errors.INVALID_PARAMS, "no", request_id=3)
    assert str(error) == "no"
    assert repr(error) == "ProtocolError(-32602, 'no', request_id=3)"


@pytest.mark.requirement("base.error-codes")
@pytest.mark.requirement("base.error-shape")
@pytest.mark.parametrize(
    "error",
    [
        errors.invalid_request("no"),
        errors.invalid_params("no", {"field": "x"}),
        errors.method_not_found("ping"),
        errors.header_mismatch("Mcp-Name is missing"),
        errors.unsupported_version("1900-01-01"),
        errors.missing_capability("no", {"sampling": {}}),
    ],
    ids=lambda error: str(error.code),
)
def test_every_error_constructor_matches_the_specification(error):
    check_message(error_response(error))
    check_message(error_response(error.with_id(1)))


def test_over_limit_and_unavailable_errors_contain_retry_after():
    assert errors.over_limit("later", 7).data == {"retryAfter": 7}
    assert errors.unavailable("later").data == {"retryAfter": 2}


@pytest.mark.requirement("versions.unsupported")
def test_an_unsupported_version_error_contains_the_supported_versions():
    error = errors.unsupported_version("v999.0.0")
    every = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    assert error.data == {"supported": every, "requested": "v999.0.0"}
    assert (
        error.message == f"Unsupported protocol version 'v999.0.0'; supported: {', '.join(every)}"
    )
