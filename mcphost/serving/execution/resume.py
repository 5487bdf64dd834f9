"""Resume a call: open and check its request state, and accept the input responses sent with it.

Only responses to input requests that the state lists are accepted, and none a second time. All
others are ignored (spec: basic/patterns/mrtr, Error Handling).
"""

import time
from collections.abc import Mapping
from typing import Any

from mcphost.protocol.errors import ProtocolError, invalid_params
from mcphost.runtime.journal import EMPTY, UNASKED, Answer
from mcphost.sealing.tokens import Purpose, SealError, key_id
from mcphost.serving import request_state, sealing
from mcphost.serving.context import FRESH, Incoming, Resumed, TakenAnswer
from mcphost.serving.request_state import AskedQuestion, InvalidStateError, RequestState

_MARKS: Mapping[str, str] = {
    "elicitation/create": "action",
    "sampling/createMessage": "role",
    "roots/list": "roots",
}
"""The field that identifies the result of each method that a client can be asked for."""


def resumes_call(params: Mapping[str, Any]) -> bool:
    """Whether a request resumes a call."""
    return "requestState" in params or "inputResponses" in params


async def resume(
    incoming: Incoming, binding: request_state.StateBinding, *, unasked: bool
) -> Resumed:
    """Open and check the request's state and input responses.

    `unasked`: accept responses that were not requested, too. Raises InvalidStateError if the state is
    not valid for this request, ProtocolError (INVALID_PARAMS) for a response of the wrong kind.
    """
    params = incoming.exchange.params
    responses = params.get("inputResponses") or {}
    token = params.get("requestState")
    if token is None:
        return _without_state(responses) if unasked else FRESH
    state = request_state.read(await _opened(incoming, token))
    request_state.check(state, time.time(), binding)
    answers = tuple(_requested_answers(state, responses))
    if unasked:
        answers += tuple(
            _unasked(responses, {answer.key for answer in answers} | set(state.input_requests))
        )
    journal = state.journal
    for answer in answers:
        journal = journal.with_answer(answer.key, answer.answer)
    return Resumed(state, journal, answers, key_id(token))


async def _opened(incoming: Incoming, token: str) -> bytes:
    try:
        return await sealing.unseal(Purpose.STATE, incoming.tenant.id, token)
    except SealError as error:
        raise InvalidStateError(error.reason) from None


def _requested_answers(state: RequestState, responses: Mapping[str, Any]) -> list[TakenAnswer]:
    return [
        TakenAnswer(
            key,
            question.method,
            Answer(question.question, state.version, _fitting(key, question, response)),
        )
        for key, question in state.input_requests.items()
        if (response := responses.get(key)) is not None
        and state.journal.answer(key, question.question) is None
    ]


def _fitting(key: str, question: AskedQuestion, response: Mapping[str, Any]) -> Mapping[str, Any]:
    check_kind(key, question.method, response)
    return response


def check_kind(key: str, method: str, response: Mapping[str, Any]) -> None:
    """Refuse a response that is not a result of `method`. Raises ProtocolError (INVALID_PARAMS)."""
    if _MARKS[method] not in response:
        raise wrong_kind(key, method)


def invalid_state() -> ProtocolError:
    """The error for every state that is not valid for its request, whatever the reason."""
    return invalid_params(
        "params.requestState is not valid for this request", {"reason": "invalid_request_state"}
    )


def wrong_kind(key: str, method: str) -> ProtocolError:
    """-32602: an input response that is not a result of the requested method."""
    return invalid_params(f"params.inputResponses.{key} must be the result of {method}")


def _without_state(responses: Mapping[str, Any]) -> Resumed:
    answers = tuple(_unasked(responses, set()))
    journal = EMPTY
    for answer in answers:
        journal = journal.with_answer(answer.key, answer.answer)
    return Resumed(None, journal, answers)


def _unasked(responses: Mapping[str, Any], excluded_keys: set[str]) -> list[TakenAnswer]:
    return [
        TakenAnswer(key, "", Answer(UNASKED, "", result))
        for key, result in responses.items()
        if key not in excluded_keys
    ]
