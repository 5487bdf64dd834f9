"""Resuming a call: which states and which input responses are accepted."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from mcphost.protocol.errors import INVALID_PARAMS, ProtocolError
from mcphost.protocol.exchange import Exchange, Meta
from mcphost.runtime.journal import EMPTY, UNASKED, Answer
from mcphost.runtime.outcomes import Outcome
from mcphost.sealing.tokens import Purpose
from mcphost.serving import request_state, sealing
from mcphost.serving.context import FRESH, Incoming, Resumed
from mcphost.serving.execution import resume
from mcphost.serving.request_state import (
    AskedQuestion,
    InvalidStateError,
    RequestState,
    StateBinding,
)
from tests.kinds.rounds import TENANT
from tests.serving.defined_rounds import turn

pytestmark = pytest.mark.django_db(transaction=True)

BOUND = StateBinding("token:t1", "tools/call", "tool", "arguments")
FORM = {"action": "accept", "content": {"name": "Ada"}}
ROOTS = {"roots": [{"uri": "file:///a"}]}
SAMPLE = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
ASKED = {
    "name": AskedQuestion("elicitation/create", "q1"),
    "roots": AskedQuestion("roots/list", "q2"),
    "capital": AskedQuestion("sampling/createMessage", "q3"),
}


async def _nothing() -> Outcome:
    raise AssertionError("nothing runs here")


def _incoming(params: Mapping[str, Any]) -> Incoming:
    plain = turn(_nothing).incoming
    was = plain.exchange
    exchange = Exchange(1, "tools/call", {"name": "tool", **params}, Meta(), was.era, was.revision)
    return plain._replace(exchange=exchange)


def _state(**said: Any) -> RequestState:
    now = time.time()
    plain = RequestState(BOUND, uuid4(), 1, 1, False, now, now + 60, "1", ASKED, EMPTY, 2)
    return plain._replace(**said)


async def _sealed(state: RequestState, purpose: Purpose = Purpose.STATE) -> str:
    return await sealing.seal(purpose, TENANT, request_state.write(state))


async def _resume(params: Mapping[str, Any], *, unasked: bool = False) -> Resumed:
    return await resume.resume(_incoming(params), BOUND, unasked=unasked)


async def _with(responses: Any, *, unasked: bool = False, **said: Any) -> Resumed:
    token = await _sealed(_state(**said))
    return await _resume({"requestState": token, "inputResponses": responses}, unasked=unasked)


async def test_responses_to_open_input_requests_are_accepted() -> None:
    resumed = await _with({"name": FORM, "roots": ROOTS, "capital": SAMPLE})
    assert resumed.journal.answers == {
        "name": (Answer("q1", "1", FORM),),
        "roots": (Answer("q2", "1", ROOTS),),
        "capital": (Answer("q3", "1", SAMPLE),),
    }
    assert [one.key for one in resumed.responses] == ["name", "roots", "capital"]
    assert resumed.sealed_by


async def test_unrequested_responses_are_ignored() -> None:
    resumed = await _with({"other": FORM})
    assert (resumed.responses, resumed.journal) == ((), EMPTY)


async def test_a_response_is_never_overwritten() -> None:
    journal = EMPTY.with_answer("name", Answer("q1", "1", FORM))
    resumed = await _with({"name": {"action": "decline"}}, journal=journal)
    assert resumed.responses == ()
    assert resumed.journal == journal


async def test_a_reworded_input_request_under_the_same_key_is_a_different_one() -> None:
    journal = EMPTY.with_answer("name", Answer("q0", "0", {"action": "cancel"}))
    resumed = await _with({"name": FORM}, journal=journal)
    assert [one.question for one in resumed.journal.answers["name"]] == ["q0", "q1"]


@pytest.mark.parametrize(
    ("key", "answer"),
    [("name", ROOTS), ("name", SAMPLE), ("roots", FORM), ("capital", FORM), ("capital", ROOTS)],
)
async def test_a_response_of_the_wrong_type_is_refused_by_its_key(key: str, answer: Any) -> None:
    with pytest.raises(ProtocolError) as refused:
        await _with({key: answer})
    assert refused.value.code == INVALID_PARAMS
    assert f"params.inputResponses.{key} must be the result of {ASKED[key].method}" in str(
        refused.value
    )


async def test_without_a_state_responses_are_ignored() -> None:
    assert await _resume({"inputResponses": {"name": FORM}}) == FRESH


async def test_a_tool_that_opts_in_receives_unrequested_responses() -> None:
    resumed = await _resume({"inputResponses": {"name": FORM}}, unasked=True)
    assert resumed.journal.answer("name", "whatever") == Answer(UNASKED, "", FORM)
    assert [one.method for one in resumed.responses] == [""]
    later = await _with({"name": FORM, "more": ROOTS}, unasked=True)
    assert later.journal.answer("more", "whatever") == Answer(UNASKED, "", ROOTS)
    assert later.journal.answer("name", "q0") is None


async def test_equal_responses_have_equal_digests() -> None:
    one = await _with({"name": FORM, "roots": ROOTS})
    again = await _with({"roots": ROOTS, "name": FORM, "other": SAMPLE})
    other = await _with({"name": {"action": "decline"}, "roots": ROOTS})
    assert one.digest == again.digest != other.digest


@pytest.mark.parametrize(
    "token", ["", "x", "mcps1.", "mcps1.00000000.AAAA", "é" * 99, "x" * 70_000]
)
async def test_an_invalid_state_is_refused(token: str) -> None:
    with pytest.raises(InvalidStateError):
        await _resume({"requestState": token})


async def test_a_token_of_another_purpose_is_refused_as_a_state() -> None:
    token = await _sealed(_state(), Purpose.CURSOR)
    with pytest.raises(InvalidStateError, match="not-authentic"):
        await _resume({"requestState": token})


async def test_a_state_of_another_request_is_refused() -> None:
    with pytest.raises(InvalidStateError, match="another target"):
        await _with({}, bound=BOUND._replace(target="other"))


async def test_every_refusal_is_the_same_for_the_caller() -> None:
    error = resume.invalid_state()
    assert (error.code, error.data) == (INVALID_PARAMS, {"reason": "invalid_request_state"})
