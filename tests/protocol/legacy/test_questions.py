"""Tests of input requests in each session-based revision."""

import copy

import pytest

from mcphost.protocol.legacy.questions import (
    NotCarriedError,
    elicitation_id,
    needed,
    question_params_for,
)
from mcphost.protocol.revisions import REVISIONS
from tests.wire import SESSION_BASED

OLDEST, FIRST, SECOND, LAST = SESSION_BASED
TITLED = {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a"]}}
TEXT = {"role": "user", "content": {"type": "text", "text": "hi"}}


def form(**fields):
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"mode": "form", "message": "Well?", "requestedSchema": schema}


def elicited(revision: str, params):
    return question_params_for(REVISIONS[revision], "elicitation/create", params)


def sampled(revision: str, **more):
    params = {"messages": [TEXT], "maxTokens": 5, **more}
    return question_params_for(REVISIONS[revision], "sampling/createMessage", params)


def test_the_last_revision_receives_forms_unchanged() -> None:
    params = form(one=TITLED, many=SEVERAL)
    assert elicited(LAST, params) == params


def test_earlier_revisions_receive_titles_of_choices_as_a_separate_list() -> None:
    params = form(one={**TITLED, "default": "a"}, sure={"type": "boolean", "default": True})
    before = copy.deepcopy(params)
    plain = elicited(SECOND, params)
    assert params == before
    assert set(plain) == {"message", "requestedSchema"}
    assert plain["requestedSchema"]["required"] == ["one", "sure"]
    assert plain["requestedSchema"]["properties"] == {
        "one": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        "sure": {"type": "boolean", "default": True},
    }


def test_only_the_last_revision_receives_multiple_choice_fields() -> None:
    with pytest.raises(NotCarriedError) as refusal:
        elicited(SECOND, form(many=SEVERAL))
    assert refusal.value.capability == "elicitation.form"


@pytest.mark.parametrize("params", [form(), {"mode": "url", "url": "https://a.example"}])
def test_the_first_revision_has_no_elicitation(params) -> None:
    with pytest.raises(NotCarriedError) as refusal:
        elicited(FIRST, params)
    assert refusal.value.capability == "elicitation"


def test_a_url_input_request_has_an_id_and_only_the_last_revision_receives_it() -> None:
    params = {"mode": "url", "message": "Sign in", "url": "https://a.example"}
    assert elicited(LAST, params) == {**params, "elicitationId": elicitation_id(params["url"])}
    with pytest.raises(NotCarriedError) as refusal:
        elicited(SECOND, params)
    assert refusal.value.capability == "elicitation.url"


@pytest.mark.parametrize("revision", SESSION_BASED)
def test_plain_sampling_and_roots_are_sent_in_all_revisions(revision: str) -> None:
    assert sampled(revision) == {"messages": [TEXT], "maxTokens": 5}
    assert question_params_for(REVISIONS[revision], "roots/list", {}) == {}


@pytest.mark.parametrize("more", [{"tools": []}, {"toolChoice": {"mode": "auto"}}])
def test_only_the_last_revision_receives_tools_in_sampling(more) -> None:
    assert sampled(LAST, **more) == {"messages": [TEXT], "maxTokens": 5, **more}
    for revision in (FIRST, SECOND):
        with pytest.raises(NotCarriedError) as refusal:
            sampled(revision, **more)
        assert refusal.value.capability == "sampling.tools"


def test_earlier_revisions_receive_a_list_of_one_content_block_as_that_block() -> None:
    listed = [{"role": "user", "content": [TEXT["content"]]}]
    assert sampled(SECOND, messages=listed)["messages"] == [TEXT]
    assert sampled(LAST, messages=listed)["messages"] == listed


@pytest.mark.parametrize(
    "content", [[], [TEXT["content"]] * 2, {"type": "tool_result", "toolUseId": "1", "content": []}]
)
def test_content_that_does_not_fit_one_block_is_not_sent_to_earlier_revisions(content) -> None:
    with pytest.raises(NotCarriedError):
        sampled(SECOND, messages=[{"role": "user", "content": content}])


def test_the_oldest_revision_receives_no_audio() -> None:
    spoken = [
        {"role": "user", "content": {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}}
    ]
    assert sampled(FIRST, messages=spoken)["messages"] == spoken
    with pytest.raises(NotCarriedError, match=r"exactly one block: text, image$"):
        sampled(OLDEST, messages=spoken)


@pytest.mark.parametrize(
    ("method", "params", "capability"),
    [
        ("elicitation/create", {"mode": "url"}, "elicitation.url"),
        ("elicitation/create", {}, "elicitation.form"),
        ("sampling/createMessage", {}, "sampling"),
        ("roots/list", {}, "roots"),
    ],
)
def test_each_input_request_needs_its_capability(method: str, params, capability: str) -> None:
    assert needed(method, params) == capability
