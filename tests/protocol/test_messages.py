"""The messages that the server sends are valid by the specification's schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.jsonrpc import JSONRPCError, jsonrpc_message_adapter

from mcphost.protocol.errors import INVALID_PARAMS, ProtocolError
from mcphost.protocol.messages import (
    LOG_LEVELS,
    error_response,
    log_message,
    progress,
    response,
    wants,
)
from tests.wire import check_message

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
IDS = st.integers(-(2**63), 2**64 - 1) | st.text()


@pytest.mark.requirement("base.response-id")
@given(IDS)
def test_a_response_has_the_id_of_its_request(request_id):
    message = check_message(response(request_id, {"resultType": "complete"}))
    assert message == {"jsonrpc": "2.0", "id": request_id, "result": {"resultType": "complete"}}


@pytest.mark.parametrize("value", [2**64, "\ud800", {1: 2}, object()])
def test_a_result_that_is_not_json_raises_type_error(value):
    with pytest.raises(TypeError):
        response(1, {"resultType": "complete", "value": value})


@pytest.mark.requirement("base.error-shape")
@given(IDS, st.text(st.characters(exclude_categories=[]), min_size=1))
def test_an_error_of_any_text_can_be_sent(request_id, text):
    message = check_message(error_response(ProtocolError(INVALID_PARAMS, text, None, request_id)))
    assert message["id"] == request_id
    assert "data" not in message["error"]


@pytest.mark.requirement("base.error-id")
def test_an_error_without_a_readable_request_id_has_a_null_id():
    message = check_message(error_response(ProtocolError(INVALID_PARAMS, "no", {"a": 1})))
    assert message == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": INVALID_PARAMS, "message": "no", "data": {"a": 1}},
    }


def test_the_official_python_client_reads_an_error_with_a_null_id():
    read = jsonrpc_message_adapter.validate_json(
        error_response(ProtocolError(INVALID_PARAMS, "no"))
    )
    assert isinstance(read, JSONRPCError)
    assert (read.id, read.error.message) == (None, "no")


def test_progress_may_have_a_total_and_a_message():
    assert check_message(progress("t", 0.5))["params"] == {"progressToken": "t", "progress": 0.5}
    params = check_message(progress(4, 50, 100, "half"))["params"]
    assert params == {"progressToken": 4, "progress": 50, "total": 100, "message": "half"}


@given(st.sampled_from(LOG_LEVELS), JSON, st.none() | st.text())
def test_a_log_message_carries_any_json(level, data, logger):
    params = check_message(log_message(level, data, logger))["params"]
    assert (params["level"], params["data"], params.get("logger")) == (level, data, logger)


@pytest.mark.requirement("logging.level")
@pytest.mark.parametrize("level", LOG_LEVELS)
@pytest.mark.parametrize("minimum", LOG_LEVELS)
def test_a_client_receives_log_messages_of_its_level_and_above(level, minimum):
    assert wants(level, minimum) == (LOG_LEVELS.index(level) >= LOG_LEVELS.index(minimum))


@pytest.mark.requirement("logging.asked-for")
def test_a_client_without_a_log_level_receives_no_log_messages():
    assert not any(wants(level, None) for level in LOG_LEVELS)
