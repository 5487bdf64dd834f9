"""The referee itself: what is wrong does not pass it."""

import pytest

from tests.wire import check_message, check_response, check_type

RESULT = {"resultType": "complete", "content": []}


def result(value) -> dict:
    return {"jsonrpc": "2.0", "id": 1, "result": value}


def error(code: int, **more) -> dict:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", **more}}


@pytest.mark.requirement("http.no-server-requests")
@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (b"[]", "not a JSON object"),
        ({"id": 1, "result": RESULT}, "jsonrpc"),
        ({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create"}, "a server sent a request"),
        ({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}, "progress"),
        ({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "no"}}, "id"),
        ({"jsonrpc": "2.0", "id": 1.0, "result": RESULT}, "id"),
        ({"jsonrpc": "2.0", "result": RESULT}, "id"),
        (result({"content": []}), "resultType"),
        ({**result(RESULT), **error(1)}, "both"),
        (error(-32002), "reserved"),
        (error(-32000), "reserved"),
        (error(-32022), "data"),
        (error(-32021, data={"requiredCapabilities": ["sampling"]}), "requiredCapabilities"),
        (error(-31429, message=""), "without a message"),
    ],
)
def test_what_a_server_must_not_send_is_found(message, problem):
    with pytest.raises(AssertionError, match=problem):
        check_message(message)


@pytest.mark.parametrize(
    ("method", "message", "problem"),
    [
        ("tools/call", {"jsonrpc": "2.0", "method": "notifications/message"}, "LoggingMessage"),
        ("tools/call", {"jsonrpc": "2.0", "method": "notifications/x"}, "no response"),
        ("tools/call", result({"resultType": "complete"}), "content"),
        ("tools/call", result({"resultType": "input_required"}), "neither"),
        ("tools/call", result({"resultType": "later"}), "unknown resultType"),
        (
            "tools/list",
            result({"resultType": "input_required", "requestState": "s"}),
            "must not ask",
        ),
        ("tools/list", result({"resultType": "complete", "tools": []}), "ttlMs"),
        ("tools/list", result({"resultType": "complete", "tools": [{"name": "a"}]}), "tools/0"),
    ],
)
def test_what_does_not_answer_the_method_is_found(method, message, problem):
    with pytest.raises(AssertionError, match=problem):
        check_response(method, message)


def test_what_is_right_passes_and_comes_back_decoded():
    assert check_message(b'{"jsonrpc":"2.0","error":{"code":-31405,"message":"no"}}')["error"]
    assert check_response("tools/call", result(RESULT))["id"] == 1
    assert check_response("tasks/get", result({"resultType": "complete"}))
    assert check_response("tools/call", error(-32602))
    check_type("Role", "user")


def test_a_client_sends_requests_and_notifications():
    assert check_message({"jsonrpc": "2.0", "method": "notifications/cancelled"}, "client")
    assert check_message({"jsonrpc": "2.0", "id": 1, "method": "ping"}, "client")
    with pytest.raises(AssertionError, match="a client sent a response"):
        check_message(result(RESULT), "client")
    with pytest.raises(AssertionError, match="CallToolRequest"):
        check_message({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, "client")
