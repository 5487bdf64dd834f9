"""Tests of the schema check that other tests use: it refuses invalid messages."""

import pytest

from tests.wire import SESSION_BASED, check_message, check_response, check_type

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
        ({"jsonrpc": "2.0", "result": RESULT}, "id"),
        (result({"content": []}), "resultType"),
        ({**result(RESULT), **error(1)}, "both"),
        (error(-32002), "reserved"),
        (error(-32021, data={"requiredCapabilities": ["sampling"]}), "requiredCapabilities"),
        (error(-31429, message=""), "without a message"),
    ],
)
def test_messages_that_a_server_must_not_send_are_refused(message, problem):
    with pytest.raises(AssertionError, match=problem):
        check_message(message)


@pytest.mark.parametrize(
    ("method", "message", "problem"),
    [
        ("tools/call", {"jsonrpc": "2.0", "method": "notifications/message"}, "LoggingMessage"),
        ("tools/call", result({"resultType": "complete"}), "content"),
        ("tools/call", result({"resultType": "input_required"}), "neither"),
        ("tools/list", result({"resultType": "input_required", "requestState": "s"}), "must not"),
        ("tools/list", result({"resultType": "complete", "tools": []}), "ttlMs"),
        ("tools/list", result({"resultType": "complete", "tools": [{"name": "a"}]}), "tools/0"),
    ],
)
def test_responses_that_do_not_fit_their_method_are_refused(method, message, problem):
    with pytest.raises(AssertionError, match=problem):
        check_response(method, message)


def test_valid_messages_pass_and_are_returned_decoded():
    assert check_message(b'{"jsonrpc":"2.0","id":null,"error":{"code":-31405,"message":"no"}}')[
        "error"
    ]
    assert check_response("tools/call", result(RESULT))["id"] == 1
    assert check_response("com.example/x", result({"resultType": "complete"}))
    assert check_response("tools/call", error(-32602))
    check_type("Role", "user")


TASK = {
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-07-28T00:00:00.000Z",
    "lastUpdatedAt": "2026-07-28T00:00:00.000Z",
    "ttlMs": None,
}
HANDLE = {**TASK, "resultType": "task"}
GOT = {**TASK, "resultType": "complete"}


@pytest.mark.parametrize(
    ("method", "value", "problem"),
    [
        ("tools/call", {**HANDLE, "ttlMs": 0.5}, "ttlMs|not a CreateTask"),
        ("prompts/get", HANDLE, "prompts/get cannot end as a task"),
        ("tasks/get", {"resultType": "complete"}, "not a GetTaskResult"),
        ("tasks/get", {**GOT, "result": RESULT}, "working has no res"),
        ("tasks/get", {**GOT, "status": "failed"}, "GetTaskResult"),
        ("tasks/get", {**GOT, "status": "completed", "result": {}}, "CallToolResult"),
        ("tasks/update", {"resultType": "complete", "taskId": "t"}, "no taskId"),
        ("tasks/cancel", {"resultType": "complete", "status": "cancelled"}, "no status"),
    ],
)
def test_invalid_tasks_are_refused(method, value, problem):
    with pytest.raises(AssertionError, match=problem):
        check_response(method, result(value))


# --- the session-based revisions ---

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
OURS = "io.modelcontextprotocol"


def asked(method: str, params=None) -> dict:
    message = {"jsonrpc": "2.0", "id": 1, "method": method}
    return message if params is None else {**message, "params": params}


def notified(method: str) -> dict:
    return {"jsonrpc": "2.0", "method": method, "params": {"elicitationId": "1"}}


@pytest.mark.parametrize(
    ("revision", "message", "problem"),
    [
        (LAST, {"id": 1, "result": {}}, "jsonrpc"),
        (LAST, asked("tools/call"), "not in 2025-11-25"),
        (LAST, {"jsonrpc": "2.0", "method": "notifications/x"}, "not in 2025-11-25"),
        (LAST, error(-32021), "nobody knows"),
        (LAST, {**result({}), **error(-32602)}, "id|both|additional"),
        (SECOND, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}, "id"),
        (FIRST, asked("elicitation/create", {"message": "?"}), "not in 2025-03-26"),
        (SECOND, notified("notifications/elicitation/complete"), "not in 2025-06-18"),
    ],
)
def test_session_messages_that_a_server_must_not_send_are_refused(revision, message, problem):
    with pytest.raises(AssertionError, match=problem):
        check_message(message, revision=revision)


@pytest.mark.parametrize(
    ("revision", "method", "value", "problem"),
    [
        (LAST, "tools/call", RESULT, "resultType"),
        (LAST, "ping", {"_meta": {}}, "must be {}"),
        (LAST, "server/discover", {}, "not in 2025-11-25"),
        (LAST, "tools/call", {"content": [], "_meta": {f"{OURS}/serverInfo": {}}}, "serverInfo"),
        (FIRST, "prompts/list", {"prompts": [{"name": "a", "title": "A"}]}, "title"),
    ],
)
def test_session_responses_that_do_not_fit_their_method_are_refused(
    revision, method, value, problem
):
    with pytest.raises(AssertionError, match=problem):
        check_response(method, result(value), revision)


@pytest.mark.parametrize("revision", SESSION_BASED)
def test_valid_session_messages_pass(revision):
    assert check_response("ping", result({}), revision)["result"] == {}
    assert check_response("tools/call", result({"content": []}), revision)
    assert check_response("tools/call", error(-32002), revision)
    assert check_message(asked("roots/list"), revision=revision)
    assert check_message(asked("ping"), "client", revision)
    with pytest.raises(AssertionError, match="not in"):
        check_message({"jsonrpc": "2.0", "method": "notifications/message"}, "client", revision)
