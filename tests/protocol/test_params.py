"""Tests of the params of each method, and of `_meta`."""

import pytest

from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.params import NAME_FIELDS
from tests.mcp import header_value
from tests.protocol.requests import (
    ABSENT,
    CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    META,
    changed,
    opened,
    request,
    with_meta,
)

LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
TASK_METHODS = ["tasks/get", "tasks/update", "tasks/cancel"]
FOLLOWING = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
ASKING = ["tools/call", "prompts/get", "resources/read"]
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def asking(method: str, **params) -> dict:
    return request(method, {"_meta": META, NAME_FIELDS[method]: "x:y", **params})


def problem(message) -> str:
    with pytest.raises(ProtocolError) as caught:
        opened(message)
    assert (caught.value.code, caught.value.status, caught.value.request_id) == (-32602, 400, 7)
    return caught.value.message


# --- lists ---


@pytest.mark.parametrize("method", LISTS)
def test_a_cursor_is_any_text(method):
    for cursor in ("", "abc"):
        assert opened(request(method, {"_meta": META, "cursor": cursor})).params["cursor"] == cursor
    for cursor, kind in ((5, "a number"), ([], "an array")):
        message = problem(request(method, {"_meta": META, "cursor": cursor}))
        assert message == f"params.cursor must be a string, not {kind}"


# --- methods that may ask ---


@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize(
    ("field", "wrong", "text"),
    [
        ("arguments", [[1], "a", 5, True], "params.arguments must be an object"),
        ("requestState", [5, {}], "params.requestState must be a string"),
        ("inputResponses", [[1], "a"], "params.inputResponses must be an object"),
    ],
)
def test_params_of_calls_have_their_types(method, field, wrong, text):
    for value in wrong:
        if (method, field) != ("resources/read", "arguments"):
            assert problem(asking(method, **{field: value})).startswith(text)


@pytest.mark.requirement("mrtr.responses")
@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize(
    ("response", "why"),
    [
        (12345, "it must be an object, not a number"),
        (None, "it must be an object, not null"),
        (["Alice"], "it must be an object, not an array"),
        ({}, "it has none of action, role and roots"),
        ({"action": "maybe"}, "action must be accept, decline or cancel"),
        ({"action": ["accept"]}, "action must be accept, decline or cancel"),
        ({"action": "accept", "content": "Alice"}, "content must be an object, not a string"),
        ({"action": "accept", "content": 7}, "content must be an object, not a number"),
        (
            {"action": "accept", "content": {"first": "a", "name": {"first": "Alice"}}},
            "content.name must be a string, a number, a boolean or an array of strings, not an object",
        ),
        (
            {"action": "accept", "content": {"names": ["Alice", 5]}},
            "content.names[1] must be a string, not a number",
        ),
        (
            {"action": "accept", "content": {"names": ["Alice"] * 20_000 + [5]}},
            "content is not valid",
        ),
        (
            {"action": "accept", "content": {"names": ["Alice"], "age": {}}},
            "content.age must be a string, a number, a boolean or an array of strings, not an object",
        ),
        (changed(SAMPLED, {"model": ABSENT}), "model must be a string, but is missing"),
        ({**SAMPLED, "content": {"type": "text", "text": 5}}, "content is not valid"),
        ({**SAMPLED, "content": "Paris"}, "content is not valid"),
        ({"roots": {}}, "roots must be an array, not an object"),
        ({"roots": [{"uri": 5}]}, "roots is not valid"),
    ],
)
def test_an_invalid_input_response_is_named_with_its_problem(method, response, why):
    responses = {"fine": {"action": "decline"}, "user_name": response}
    message = problem(asking(method, inputResponses=responses))
    assert message == (
        "params.inputResponses.user_name must be the result of an elicitation, sampling or "
        f"roots request: {why}"
    )


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("a b", "params.inputResponses['a b']"),
        ("k" * 64 + "#1000", "params.inputResponses['" + "k" * 64 + "#1000']"),
        ("k" * 1000, "params.inputResponses." + "k" * 80),
    ],
)
def test_an_invalid_input_response_is_named_by_its_key_whatever_the_key_is(key, where):
    message = problem(asking("tools/call", inputResponses={key: 5}))
    assert message.startswith(where + " must be the result of")


@pytest.mark.parametrize("method", ASKING)
def test_every_type_of_input_response_is_accepted(method):
    use = {"type": "tool_use", "id": "1", "name": "a", "input": {}}
    responses = {
        "form": {"action": "accept", "content": {"name": "Alice", "age": 3, "score": 1.5}},
        "choice": {"action": "accept", "content": {"colours": ["red"], "sure": True, "no": None}},
        "empty": {"action": "accept", "content": None},
        "sampling": SAMPLED,
        "tools": {**SAMPLED, "content": [use]},
        "roots": {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]},
        "url": {"action": "cancel"},
    }
    assert opened(asking(method, inputResponses={})).params["inputResponses"] == {}
    exchange = opened(asking(method, inputResponses=responses, requestState="s"))
    assert exchange.params["inputResponses"] == responses
    php = {"form": {"action": "accept", "content": []}}  # an empty form of a client in PHP
    exchange = opened(asking(method, inputResponses=php, requestState="s"))
    assert exchange.params["inputResponses"] == {"form": {"action": "accept", "content": {}}}


# --- completion and subscriptions ---


def completion(**changes) -> dict:
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    return request("completion/complete", {"_meta": META, **params, **changes})


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"ref": {"type": "ref/prompt"}}, "params.ref.name: field required"),
        ({"argument": {"name": "a"}}, "params.argument.value: field required"),
        ({"context": {"arguments": {"a": 5}}}, "params.context.arguments.a: "),
    ],
)
def test_an_invalid_completion_is_refused_with_the_path(changes, where):
    assert problem(completion(**changes)).startswith(where)


def listening(**params) -> dict:
    return request("subscriptions/listen", {"_meta": META, **params})


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({}, ": field required"),
        ({"notifications": {"toolsListChanged": "yes"}}, ".toolsListChanged: "),
        ({"notifications": {"resourceSubscriptions": ["a:b", 5]}}, ".resourceSubscriptions.1: "),
    ],
)
def test_an_invalid_subscription_filter_is_refused_with_the_path(params, where):
    assert problem(listening(**params)).startswith(f"params.notifications{where}")


def following(task_ids, capabilities=FOLLOWING, **others) -> dict:
    """A request for the notifications of tasks."""
    params = {"notifications": {"taskIds": task_ids, **others}}
    return request(
        "subscriptions/listen", {"_meta": {**META, CAPABILITIES: capabilities}, **params}
    )


@pytest.mark.parametrize(
    ("task_ids", "text"),
    [
        ({"a": 1}, " must be an array, not an object"),
        (["a", None], "[1] must be a string, not null"),
        (["a", "t" * 65], "[1] has more than 64 characters"),
        (list(map(str, range(101))), " has more than 100 ids"),
    ],
)
@pytest.mark.parametrize("capabilities", [FOLLOWING, {}])
def test_an_invalid_subscription_to_tasks_is_refused_with_the_path(task_ids, text, capabilities):
    assert problem(following(task_ids, capabilities)) == f"params.notifications.taskIds{text}"


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"extensions": {"com.example/x": {}}}, {"tasks": {"list": {}}}],
)
def test_only_clients_with_the_tasks_extension_can_subscribe_to_tasks(capabilities):
    with pytest.raises(ProtocolError) as caught:
        opened(following(["a"], capabilities, toolsListChanged=True))
    error = caught.value
    assert (error.code, error.status, error.request_id) == (-32021, 400, 7)
    assert error.data == {"requiredCapabilities": FOLLOWING}
    assert opened(following([], capabilities, toolsListChanged=True))


# --- tasks ---


def of_task(method: str, **params) -> dict:
    base = {"_meta": META, "taskId": "t-1"}
    if method == "tasks/update":
        base["inputResponses"] = {}
    return request(method, changed(base, params))


@pytest.mark.parametrize("method", TASK_METHODS)
def test_a_task_is_identified_by_its_task_id(method):
    for task_id in ("", "a", "t" * 64, "786512e2-9e0d-44bd-8f29-789f320fe840", "=?ünïcode?="):
        headers = {"mcp_name": header_value(task_id)}
        assert opened(of_task(method, taskId=task_id), **headers).params["taskId"] == task_id


@pytest.mark.parametrize("method", TASK_METHODS)
@pytest.mark.parametrize(
    ("task_id", "text"),
    [
        (ABSENT, "must be a string, but is missing"),
        (None, "must be a string, not null"),
        ("t" * 65, "has more than 64 characters"),
    ],
)
def test_an_invalid_task_id_is_refused(method, task_id, text):
    assert problem(of_task(method, taskId=task_id)) == f"params.taskId {text}"


@pytest.mark.parametrize(
    ("responses", "text"),
    [
        (ABSENT, "must be an object, but is missing"),
        ([1], "must be an object, not an array"),
    ],
)
def test_a_task_update_needs_input_responses(responses, text):
    message = problem(of_task("tasks/update", inputResponses=responses))
    assert message == f"params.inputResponses {text}"


@pytest.mark.parametrize(
    "response",
    [
        None,
        {},
        {"action": "maybe"},
    ],
)
def test_a_malformed_input_response_in_a_task_update_is_accepted_when_opened(response):
    responses = {"fine": {"action": "decline"}, "name#2": response}
    exchange = opened(of_task("tasks/update", inputResponses=responses))
    assert exchange.params["inputResponses"] == responses


# --- meta ---


@pytest.mark.requirement("base.client-info-optional")
def test_absent_meta_fields_are_none_or_empty():
    meta = opened(with_meta(**{CLIENT_INFO: ABSENT})).meta
    assert (meta.progress_token, meta.log_level, meta.traceparent) == (None, None, None)
    assert (meta.client_info, meta.capabilities) == ({}, {})


def test_present_meta_fields_are_read():
    capabilities = {"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}
    changes = {
        "progressToken": "t",
        "traceparent": PARENT,
        LOG_LEVEL: "warning",
        CAPABILITIES: capabilities,
    }
    meta = opened(with_meta(**changes)).meta
    assert (meta.progress_token, meta.log_level, meta.traceparent) == ("t", "warning", PARENT)
    assert meta.client_info == {"name": "tests", "version": "1"}
    assert meta.capabilities == capabilities


@pytest.mark.requirement("progress.token")
def test_a_progress_token_is_a_string_or_an_integer():
    for token in ("", "a", 0, -5, 2**63):
        assert opened(with_meta(progressToken=token)).meta.progress_token == token
    for token in (True, 1.0, 1.5, [], {}):
        assert "params._meta.progressToken must be" in problem(with_meta(progressToken=token))


def info(**more) -> dict:
    return {"name": "x", "version": "1", **more}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("progressToken", lambda size: "t" * size),
        (CLIENT_INFO, lambda size: info(name="x" * size)),
        (CLIENT_INFO, lambda size: info(version="x" * size)),
    ],
)
def test_meta_values_repeated_in_records_and_notifications_have_a_maximum_length(name, value):
    opened(with_meta(**{name: value(1024)}))
    message = problem(with_meta(**{name: value(1025)}))
    assert name in message
    assert "more than 1024 characters" in message


@pytest.mark.requirement("logging.unknown-level")
@pytest.mark.parametrize("level", ["verbose", "INFO", 5, {}])
def test_an_invalid_log_level_is_refused(level):
    message = problem(with_meta(**{LOG_LEVEL: level}))
    assert LOG_LEVEL in message
    assert "debug, info, notice" in message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((value, "") for value in ([], "x", {}, info(name=5))),
        ({"name": "x"}, ".version must be a string, but is missing"),
    ],
)
def test_an_invalid_client_info_is_refused(value, text):
    message = problem(with_meta(**{CLIENT_INFO: value}))
    assert message.startswith(f"params._meta['{CLIENT_INFO}']{text}")


@pytest.mark.parametrize(
    ("capabilities", "where"),
    [
        ({"sampling": True}, ".sampling"),
        ({"elicitation": {"form": True}}, ".elicitation.form"),
        ({"extensions": {"com.example/x": 5}}, ".extensions['com.example/x']"),
        ({"experimental": {"x": "on"}}, ".experimental.x"),
    ],
)
def test_a_capability_that_is_not_an_object_is_named_in_the_error(capabilities, where):
    message = problem(with_meta(**{CAPABILITIES: capabilities}))
    assert message.startswith(f"params._meta['{CAPABILITIES}']{where} must be an object")


@pytest.mark.requirement("base.trace-context")
@pytest.mark.parametrize(
    "parent",
    [
        *(5, None, "", "x", PARENT + "-1", PARENT.upper(), "ff" + PARENT[2:]),
        "00-" + "0" * 32 + PARENT[35:],
        PARENT[:36] + "0" * 16 + "-01",
    ],
)
def test_an_invalid_traceparent_is_ignored(parent):
    assert opened(with_meta(traceparent=parent)).meta.traceparent is None
