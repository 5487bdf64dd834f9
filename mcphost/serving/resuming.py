"""A call that comes back: its state opened and checked, and the answers that came with it taken.

Only answers to what the state says was asked are taken, and none a second time. Everything else
that a client sends along is ignored (spec: basic/patterns/mrtr, Error Handling).
"""

import time
from collections.abc import Mapping
from typing import Any

from mcphost.protocol.errors import ProtocolError, invalid_params
from mcphost.runtime.journal import EMPTY, UNASKED, Answer
from mcphost.sealing.tokens import Purpose, SealError, key_id
from mcphost.serving import opening, states
from mcphost.serving.incoming import Incoming
from mcphost.serving.resumed import FRESH, Resumed, Taken
from mcphost.serving.states import Asked, InvalidState, State

_MARKS: Mapping[str, str] = {
    "elicitation/create": "action",
    "sampling/createMessage": "role",
    "roots/list": "roots",
}
"""The field that tells the results of the methods apart that a client can be asked for."""


def comes_back(params: Mapping[str, Any]) -> bool:
    """Whether a request says that it is not a call's first."""
    return "requestState" in params or "inputResponses" in params


async def resume(incoming: Incoming, wanted: states.Bound, *, unasked: bool) -> Resumed:
    """What the leg brings along, checked.

    `unasked` lets answers in that nobody asked for. Raises InvalidState for a state that is not good
    for this request, ProtocolError (INVALID_PARAMS) for an answer of the wrong kind.
    """
    params = incoming.exchange.params
    responses = params.get("inputResponses") or {}
    token = params.get("requestState")
    if token is None:
        return _without_state(responses) if unasked else FRESH
    state = states.read(await _opened(incoming, token))
    states.check(state, time.time(), wanted)
    taken = tuple(_taken(state, responses))
    if unasked:
        taken += tuple(_unasked(responses, {one.key for one in taken} | set(state.asked)))
    journal = state.journal
    for one in taken:
        journal = journal.with_answer(one.key, one.answer)
    return Resumed(state, journal, taken, key_id(token))


async def _opened(incoming: Incoming, token: str) -> bytes:
    try:
        return await opening.unseal(Purpose.STATE, incoming.tenant.id, token)
    except SealError as error:
        raise InvalidState(error.reason) from None


def _taken(state: State, responses: Mapping[str, Any]) -> list[Taken]:
    return [
        Taken(key, asked.method, Answer(asked.question, state.version, _fitting(key, asked, given)))
        for key, asked in state.asked.items()
        if (given := responses.get(key)) is not None
        and state.journal.answer(key, asked.question) is None
    ]


def _fitting(key: str, asked: Asked, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if _MARKS[asked.method] not in given:
        raise wrong_kind(key, asked.method)
    return given


def invalid_state() -> ProtocolError:
    """The one refusal of every state that is not good for its request, whatever the reason."""
    return invalid_params(
        "params.requestState is not valid for this request", {"reason": "invalid_request_state"}
    )


def wrong_kind(key: str, method: str) -> ProtocolError:
    """-32602: an answer that is the result of something else than what was asked."""
    return invalid_params(f"params.inputResponses.{key} must be the result of {method}")


def _without_state(responses: Mapping[str, Any]) -> Resumed:
    taken = tuple(_unasked(responses, set()))
    journal = EMPTY
    for one in taken:
        journal = journal.with_answer(one.key, one.answer)
    return Resumed(None, journal, taken)


def _unasked(responses: Mapping[str, Any], known: set[str]) -> list[Taken]:
    return [
        Taken(key, "", Answer(UNASKED, "", result))
        for key, result in responses.items()
        if key not in known
    ]
