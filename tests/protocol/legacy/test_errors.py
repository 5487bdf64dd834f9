"""Tests of errors in sessions: their clients know the codes, and the statuses do not end the
connection."""

import pytest

from mcphost.protocol import errors
from mcphost.protocol.errors import HTTP_STATUS, ProtocolError
from mcphost.protocol.legacy.errors import (
    LEGACY_ERROR_CODES,
    RESOURCE_NOT_FOUND,
    in_session,
)
from mcphost.protocol.messages import error_response
from mcphost.protocol.resources import resource_not_found
from tests.wire import SESSION_BASED, check_message

OLDEST, FIRST, SECOND, LAST = SESSION_BASED


def test_every_error_code_has_a_code_for_sessions():
    assert set(LEGACY_ERROR_CODES) == set(HTTP_STATUS)


@pytest.mark.parametrize("revision", SESSION_BASED)
@pytest.mark.parametrize("code", HTTP_STATUS)
def test_every_error_in_a_session_has_a_code_of_the_revision(revision, code):
    error = in_session(ProtocolError(code, "no", {"retryAfter": 3}, request_id=1))
    check_message(error_response(error), revision=revision)
    assert (error.message, error.data, error.request_id) == ("no", {"retryAfter": 3}, 1)


@pytest.mark.parametrize(
    ("code", "told", "status"),
    [
        (errors.INVALID_PARAMS, -32602, 200),
        (errors.METHOD_NOT_FOUND, -32601, 200),
        (errors.MISSING_REQUIRED_CLIENT_CAPABILITY, -32603, 200),
        (errors.FORBIDDEN, -32600, 200),
        (errors.UNSUPPORTED_PROTOCOL_VERSION, -32602, 400),
        (errors.UNAUTHORIZED, -32600, 401),
        (errors.SESSION_GONE, -32600, 404),
        (errors.TOO_LARGE, -32600, 413),
    ],
)
def test_an_error_response_has_status_200_unless_the_revision_requires_another(code, told, status):
    error = in_session(ProtocolError(code, "no", request_id=1))
    assert (error.code, error.status) == (told, status)


@pytest.mark.parametrize("code", HTTP_STATUS)
def test_an_error_without_a_request_id_never_has_a_success_status(code):
    error = in_session(ProtocolError(code, "no"))
    assert error.status >= 400
    assert (error.status == 404) is (code == errors.SESSION_GONE)


def test_a_missing_scope_is_reported_with_status_403_and_the_scope():
    error = ProtocolError(errors.FORBIDDEN, "no", {"scope": "mcp:call"}, request_id=1)
    assert in_session(error).status == 403
    assert in_session(error).data == {"scope": "mcp:call"}


def test_resource_not_found_has_its_own_code_in_sessions():
    error = resource_not_found("test://nothing").with_id(1)
    told = in_session(error, "resources/read")
    assert (told.code, told.status) == (RESOURCE_NOT_FOUND, 200)
    assert told.data == {"uri": "test://nothing"}
    assert in_session(error, "completion/complete").code == errors.INVALID_PARAMS
    other = errors.invalid_params("params.uri must be a string").with_id(1)
    assert in_session(other, "resources/read").code == errors.INVALID_PARAMS


def test_an_error_is_converted_for_a_session_only_once():
    error = in_session(ProtocolError(errors.OVER_LIMIT, "no"))
    assert in_session(error) is error
