"""Tests of the envelope of results."""

import pytest

from mcphost.protocol.messages import response
from mcphost.protocol.results import cacheable, complete, input_required
from tests.wire import check_response

SERVER = {"name": "mcphost", "version": "1"}
INFO = "io.modelcontextprotocol/serverInfo"
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


@pytest.mark.requirement("base.server-info")
@pytest.mark.requirement("base.result-type")
def test_a_complete_result_has_its_result_type_and_the_server_info():
    result = complete({"content": []}, SERVER)
    assert result == {"content": [], "resultType": "complete", "_meta": {INFO: SERVER}}
    check_response("tools/call", response(1, result))


def test_other_meta_keys_of_a_result_are_kept():
    given = {"content": [], "_meta": {"com.example/cost": 3, INFO: {"name": "upstream"}}}
    assert complete(given, SERVER)["_meta"] == {"com.example/cost": 3, INFO: SERVER}
    assert given["_meta"][INFO] == {"name": "upstream"}


@pytest.mark.requirement("caching.hints")
@pytest.mark.parametrize("scope", ["public", "private"])
def test_a_list_carries_caching_hints(scope):
    result = cacheable(complete({"tools": []}, SERVER), 0, scope)
    assert (result["ttlMs"], result["cacheScope"]) == (0, scope)
    check_response("tools/list", response(1, result))


@pytest.mark.requirement("caching.ttl")
def test_the_ttl_of_a_result_cannot_be_negative():
    with pytest.raises(ValueError, match="ttlMs"):
        cacheable({}, -1, "private")


def test_an_interim_result_contains_input_requests_and_state():
    result = input_required({"user_name": QUESTION}, "sealed", SERVER)
    assert result["inputRequests"] == {"user_name": QUESTION}
    assert (result["requestState"], result["_meta"]) == ("sealed", {INFO: SERVER})
    check_response("tools/call", response(1, result))


def test_an_interim_result_may_contain_only_input_requests():
    result = input_required({"user_name": QUESTION}, None, SERVER)
    assert "requestState" not in result
    check_response("prompts/get", response(1, result))


def test_an_interim_result_may_contain_only_state():
    result = input_required({}, "sealed", SERVER)
    assert set(result) == {"resultType", "requestState", "_meta"}
    check_response("resources/read", response(1, result))


def test_an_interim_result_without_input_requests_and_state_is_refused():
    with pytest.raises(ValueError, match="input requests or a state"):
        input_required({}, None, SERVER)
