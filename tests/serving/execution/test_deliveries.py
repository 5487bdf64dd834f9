"""The reply for each outcome (spec: server/tools, prompts, resources: Error Handling)."""

from collections.abc import Mapping
from typing import Any

import pytest
from pytest_django import Settings

from mcphost.observability import counters
from mcphost.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    OVER_LIMIT,
    ProtocolError,
)
from mcphost.protocol.tasks import TaskStatus
from mcphost.runtime.call import Delivery, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY, Answer, Journal
from mcphost.runtime.outcomes import (
    Deferred,
    Failed,
    Failure,
    FailureKind,
    InputRequest,
    InputRequired,
    Outcome,
    Yielded,
)
from mcphost.sealing.tokens import Purpose, key_id
from mcphost.serving import request_state
from mcphost.serving.context import Resumed, Turn
from mcphost.serving.execution import deliveries
from mcphost.serving.replies import Answered, Asking, Handle, Refused
from mcphost.vault import sealer
from tests.kinds.rounds import TENANT
from tests.serving.defined_rounds import turn

ERRORS = {
    FailureKind.CAPABILITY_MISSING: MISSING_REQUIRED_CLIENT_CAPABILITY,
    FailureKind.OVERLOADED: OVER_LIMIT,
}
"""The error codes of failures that a model cannot correct. Others are results with `isError`."""

QUESTION = InputRequest("name", "elicitation/create", {"mode": "form", "message": "?"}, "digest")
OTHERS = ("prompts/get", "resources/read", "completion/complete")


async def _nothing() -> Outcome:
    raise AssertionError("nothing runs here")


def _turn(method: str = "tools/call") -> Turn:
    plain = turn(_nothing)
    return plain._replace(call=plain.call._replace(method=method, target="docs:a"))


async def _answered(outcome: Outcome, turn: Turn | None = None) -> Mapping[str, Any]:
    reply = (await deliveries.deliver(turn or _turn(), outcome)).reply
    assert isinstance(reply, Answered)
    return reply.result


async def _refused(outcome: Outcome, method: str = "tools/call") -> ProtocolError:
    reply = (await deliveries.deliver(_turn(method), outcome)).reply
    assert isinstance(reply, Refused)
    return reply.error


@pytest.mark.parametrize("method", ["tools/call", *OTHERS])
async def test_a_failure_is_a_tool_result_if_a_model_can_learn_from_it_and_otherwise_an_error(
    method: str,
) -> None:
    for kind in FailureKind:
        outcome = Failed(Failure(kind, "it did not work", "a secret detail"))
        if method == "tools/call" and kind not in ERRORS:
            text = {"type": "text", "text": "it did not work"}
            assert await _answered(outcome) == {"content": [text], "isError": True}, kind
            continue
        error = await _refused(outcome, method)
        asked_wrongly = kind in {FailureKind.TOOL_ERROR, FailureKind.INVALID_ARGUMENTS}
        code = ERRORS.get(kind, INVALID_PARAMS if asked_wrongly else INTERNAL_ERROR)
        assert (error.code, error.message) == (code, "it did not work"), kind
        assert "secret" not in str(error.data)
        if kind not in ERRORS:
            assert error.data == ({"uri": "docs:a"} if method == "resources/read" else None)


def _asked(
    attempt: int = 1,
    shed: bool = False,
    journal: Journal = EMPTY,
    repetitions: int = 0,
    *,
    again: bool = False,
) -> Turn:
    """A turn in the given HTTP request of its call; `again` if its state asked QUESTION."""
    fresh = _turn()
    if attempt == 1:
        return fresh
    state = request_state.RequestState(
        fresh.bound, fresh.call.id, 1, attempt - 1, shed, 0, 0, "1", {}, journal, 2
    )
    asked = {QUESTION.key: request_state.AskedQuestion(QUESTION.method, QUESTION.digest)}
    state = state._replace(input_requests=asked if again else {}, repetitions=repetitions)
    return fresh._replace(resumed=Resumed(state, journal, ()))


def _opened(reply: object) -> request_state.RequestState:
    assert isinstance(reply, Asking)
    return request_state.read(sealer.unseal(Purpose.STATE, TENANT, reply.state))


@pytest.mark.django_db(transaction=True)
async def test_input_requests_are_sent_with_the_state_for_the_next_round() -> None:
    journal = Journal({"old": (Answer("d", "1", {"action": "accept"}),)}, {"step": [1]}, 0.5)
    asking = _asked(3)
    delivered = await deliveries.deliver(asking, InputRequired((QUESTION,), journal))
    assert isinstance(delivered.reply, Asking)
    assert delivered.reply.requests == {
        "name": {"method": "elicitation/create", "params": QUESTION.params}
    }
    state = _opened(delivered.reply)
    assert (state.call, state.round, state.requests_made, state.shed) == (
        asking.call.id,
        1,
        3,
        False,
    )
    assert state.input_requests == {
        "name": request_state.AskedQuestion("elicitation/create", "digest")
    }
    assert state.journal == journal
    assert delivered.sealed is not None
    assert delivered.sealed.state == state
    assert delivered.sealed.key_id == key_id(delivered.reply.state)


@pytest.mark.django_db(transaction=True)
async def test_a_shed_call_requests_no_input_and_is_shed_only_once() -> None:
    before = counters.rounds_shed.series["lag",].value
    reply = (await deliveries.deliver(_asked(2), Yielded(EMPTY, "lag"))).reply
    assert counters.rounds_shed.series["lag",].value == before + 1
    assert isinstance(reply, Asking)
    assert reply.requests == {}
    assert _opened(reply).shed is True
    assert deliveries.may_move(_asked(2))
    assert not deliveries.may_move(_asked(2, shed=True))
    assert not deliveries.may_move(_asked(11))


@pytest.mark.django_db(transaction=True)
async def test_a_call_that_becomes_a_task_returns_a_handle() -> None:
    delivered = await deliveries.deliver(_turn(), Deferred(EMPTY))
    assert isinstance(delivered.reply, Handle)
    assert delivered.reply.task.status is TaskStatus.WORKING
    assert delivered.creation is not None


@pytest.mark.django_db(transaction=True)
async def test_a_stateless_call_has_ten_replies_of_which_some_are_reserved() -> None:
    async def accepted(fresh: int, repeated: int, *, again: bool, moved: bool = False) -> bool:
        """Whether a reply with a question is accepted after these replies."""
        turn = _asked(fresh + repeated + moved + 1, shed=moved, repetitions=repeated, again=again)
        delivered = await deliveries.deliver(turn, InputRequired((QUESTION,), EMPTY))
        if isinstance(delivered.reply, Asking):
            assert _opened(delivered.reply).repetitions == repeated + again
            return True
        assert isinstance(delivered.outcome, Failed)
        assert delivered.outcome.error.kind is FailureKind.ASKED_TOO_OFTEN
        return False

    for moved in (False, True):
        for repeated in (0, 1, 2):
            assert await accepted(6, repeated, again=False, moved=moved)
            assert not await accepted(7, repeated, again=False, moved=moved)
        assert await accepted(7, 1, again=True, moved=moved)
        assert await accepted(1, 7, again=True, moved=moved)
        assert not await accepted(7, 2, again=True, moved=moved)
        assert not await accepted(1, 8, again=True, moved=moved)
    move = await deliveries.deliver(_asked(10, repetitions=2), Yielded(EMPTY, "lag"))
    assert isinstance(move.reply, Asking)


@pytest.mark.django_db(transaction=True)
async def test_the_maximum_number_of_replies_is_a_setting(settings: Settings) -> None:
    settings.MCPHOST_STATELESS_REPLIES = 4
    one, two = [
        await deliveries.deliver(_asked(attempt), InputRequired((QUESTION,), EMPTY))
        for attempt in (1, 2)
    ]
    assert isinstance(one.reply, Asking)
    assert isinstance(two.reply, Answered)
    assert "4 replies" in two.reply.result["content"][0]["text"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("delivery", [Delivery.MODERN, Delivery.LEGACY, Delivery.TASK])
async def test_the_error_for_too_many_input_requests_lists_the_responses_and_the_last_problem(
    delivery: Delivery,
) -> None:
    turn = _asked(300, repetitions=290, again=True)
    turn = turn._replace(call=turn.call._replace(delivery=delivery))
    if delivery is Delivery.LEGACY:
        turn = turn._replace(incoming=turn.incoming._replace(owned_call=object()))
    journal = Journal({"size": (Answer("d", "1", {"action": "accept"}),)})
    outcome = InputRequired((QUESTION,), journal, {"name": "name: not a text"})
    delivered = await deliveries.deliver(turn, outcome)
    assert isinstance(delivered.reply, Answered)
    text = delivered.reply.result["content"][0]["text"]
    assert text.endswith(
        "Answered were: size. The response to name was not accepted: name: not a text."
    )


@pytest.mark.django_db(transaction=True)
async def test_the_error_for_a_journal_that_is_too_large_names_its_largest_part() -> None:
    journal = Journal({"k": (Answer("d", "1", {"text": "x" * 70_000}),)}, {"load": "x"})
    delivered = await deliveries.deliver(_asked(), InputRequired((QUESTION,), journal))
    assert isinstance(delivered.outcome, Failed)
    assert delivered.outcome.error.kind is FailureKind.JOURNAL_TOO_LARGE
    assert "the answer to 'k', with 70011 bytes" in delivered.outcome.error.detail


@pytest.mark.django_db(transaction=True)
async def test_an_anonymous_callers_state_lasts_ten_minutes_and_contains_no_url_requests() -> None:
    asking = _asked()
    nobody = Principal(PrincipalKind.ANONYMOUS, TENANT)
    asking = asking._replace(call=asking.call._replace(principal=nobody))
    state = _opened((await deliveries.deliver(asking, InputRequired((QUESTION,), EMPTY))).reply)
    assert round(state.expires_at - state.issued_at) == request_state.ANONYMOUS_SECONDS
    unreachable = InputRequest("pay", "elicitation/create", {"mode": "url"}, "digest")
    result = await _answered(InputRequired((unreachable,), EMPTY), asking)
    assert result["isError"] is True
