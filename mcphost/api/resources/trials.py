"""Trials: a tool is run by an operator, its draft or a version of it, before clients can call it.

A trial runs in rounds. What the tool asks for is in the response, with a state that the client sends back
with its responses; the server keeps nothing between the rounds.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, Self
from uuid import UUID

from asgiref.sync import async_to_sync
from django.core import signing
from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.etags import etag_of
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import FieldFault, ProblemError, ProblemType, not_found
from mcphost.api.representations import Fields, Representation
from mcphost.api.resources.primitives import row_of
from mcphost.catalogue import selectors
from mcphost.catalogue.fields import PrimitiveFields, fingerprint
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.execution import trials
from mcphost.serving.execution.trials import (
    DEFINING,
    REFUSAL,
    TrialEndedError,
    TrialRequest,
    TrialResult,
)
from mcphost.serving.user_slots import TRIALS
from mcphost.tenants.roles import Permission

RETRY_SECONDS: Final = 2
SHOWN_ONCE: Final = frozenset(
    {"result", "input_requests", "invalid", "state", "error", "detail", "messages"}
)
"""What a call is about: recorded encrypted, and so not stored for a repeated request."""
_SALT: Final = "mcphost.api.trials"
_SECONDS: Final = 24 * 3600
_CHANGED: Final = "The tool has changed since the trial began."


class TrialFields(Fields):
    """What to call the tool with."""

    arguments: dict[str, Any]
    version_id: UUID | None = Field(
        None, strict=False, description="The version to try; null: the working copy."
    )


class TrialResponseFields(Fields):
    """Responses to the input requests of a round."""

    state: str = Field(description="`state` of the round that asked.")
    responses: dict[str, dict[str, Any] | None] = Field(
        description="By key, as an MCP client sends them; null refuses the request."
    )


class TrialErrorRepresentation(Representation):
    """The error that a client would receive."""

    code: int
    message: str


class TrialRepresentation(Representation):
    """What a round gave. `call_id` is that of the recorded call.

    `result` is the tool's, as a client receives it. `input_requests` are by key, and wait for responses;
    `invalid` says by key why the last responses were not accepted. `detail` is where and why a script
    failed. `messages` are the notifications that a client would receive; `dropped` counts those that
    were too many. A repeated request is answered with null for all that says what the call was about
    (`result` to `messages`): the record of the call has it.
    """

    call_id: UUID
    round: int
    seconds: float
    outcome: Literal["complete", "input_required", "refused"]
    result: dict[str, Any] | None
    input_requests: dict[str, dict[str, Any]] | None
    invalid: dict[str, str] | None
    state: str | None
    error: TrialErrorRepresentation | None
    detail: str | None
    messages: list[dict[str, Any]] | None
    dropped: int

    def etag(self) -> str:
        return etag_of(self.model_copy(update=dict.fromkeys(SHOWN_ONCE)).encoded())

    @classmethod
    def of(cls, trial_result: TrialResult, state: str | None) -> Self:
        error = trial_result.error
        outcome: Literal["complete", "input_required", "refused"] = "complete"
        if error is not None:
            outcome = "refused"
        elif trial_result.requests:
            outcome = "input_required"
        return cls(
            call_id=trial_result.call,
            round=trial_result.number,
            seconds=round(trial_result.seconds, 4),
            outcome=outcome,
            result=None if trial_result.result is None else dict(trial_result.result),
            input_requests={key: dict(params) for key, params in trial_result.requests.items()},
            invalid=dict(trial_result.invalid),
            state=state,
            error=error and TrialErrorRepresentation(code=error.code, message=error.message),
            detail=trial_result.detail,
            messages=[dict(message) for message in trial_result.received[:-1]],
            dropped=trial_result.dropped,
        )


class TrialState(NamedTuple):
    """What a client carries from round to round, signed for its user, tenant and tool."""

    version: str
    definition: str
    arguments: Mapping[str, Any]
    sealed: str = ""
    tool_state: str = ""
    call: str = ""


class ToolTrial(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}/try`."""

    @operation(
        ApiOperation(
            "Try a tool: run its working copy or a version, and record it as a trial",
            Permission.EDIT_TOOLS,
            TrialRepresentation,
            body=TrialFields,
            shown_once=SHOWN_ONCE,
            example={"arguments": {}},
        )
    )
    def post(
        self, call: ApiCall, body: TrialFields, primitive_type: PrimitiveType, primitive_id: UUID
    ) -> HttpResponse:
        row = row_of(call, primitive_type, primitive_id)
        version = str(body.version_id or "")
        definition = _definition(row, version)
        state = TrialState(version, fingerprint(definition), body.arguments)
        return call.perform_claimed(lambda: _run(call, row, state, {}))


class ToolTrialContinuation(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}/try/continue`."""

    @operation(
        ApiOperation(
            "Respond to what a trial asked for, and run its next round",
            Permission.EDIT_TOOLS,
            TrialRepresentation,
            body=TrialResponseFields,
            shown_once=SHOWN_ONCE,
            example={
                "state": "of the round before",
                "responses": {"sure": {"action": "accept", "content": {"sure": True}}},
            },
        )
    )
    def post(
        self,
        call: ApiCall,
        body: TrialResponseFields,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
    ) -> HttpResponse:
        row = row_of(call, primitive_type, primitive_id)
        responses = {
            key: REFUSAL if response is None else response
            for key, response in body.responses.items()
        }
        state = _opened(call, row, body.state)
        return call.perform_claimed(lambda: _run(call, row, state, responses))


def _run(
    call: ApiCall, row: PrimitiveRow, state: TrialState, responses: Mapping[str, Mapping[str, Any]]
) -> HttpResponse:
    """Run a round outside of transactions, for what it records is committed by another thread."""
    definition = _definition(row, state.version)
    try:
        if fingerprint(definition) != state.definition:
            raise TrialEndedError(_CHANGED)
        trial_result = _admitted_round(call, row, state, definition, responses)
    except TrialEndedError as change:
        if state.call:
            trials.end(UUID(state.call), call.tenant.pk, str(change), call.actor)
        raise
    next_state = state._replace(
        sealed=trial_result.state, tool_state=trial_result.tool_state, call=str(trial_result.call)
    )
    signed = signing.dumps(next_state, salt=_salt(call, row), compress=True)
    shown = TrialRepresentation.of(trial_result, signed if trial_result.requests else None)
    return call.perform(lambda: shown)


def _admitted_round(
    call: ApiCall,
    row: PrimitiveRow,
    state: TrialState,
    definition: PrimitiveFields,
    responses: Mapping[str, Mapping[str, Any]],
) -> TrialResult:
    user = call.credential.user
    trial = TrialRequest(
        operator=user,
        tenant=call.tenant.pk,
        definition=definition,
        arguments=state.arguments,
        host=call.request.get_host(),
        source=str(call.request.META.get("REMOTE_ADDR", "")),
        primitive=row.id,
        state=state.sealed,
        responses=responses,
        tool_state=state.tool_state,
    )
    with TRIALS.of(user.pk, call.tenant.pk) as busy:
        if busy:
            message = "Other trials are running. Try again when they have ended."
            retry = {"Retry-After": str(RETRY_SECONDS)}
            raise ProblemError(ProblemType.TOO_MANY, message, headers=retry)
        return async_to_sync(trials.run)(trial)


def _definition(row: PrimitiveRow, version_id: str) -> PrimitiveFields:
    """Return what is tried: a version, or the working copy. Raises ProblemError (404)."""
    if not version_id:
        return row.fields
    version = selectors.version(row.id, UUID(version_id))
    if version is None:
        raise not_found()
    defined = {name: version.snapshot[name] for name in DEFINING}
    return PrimitiveFields(name=row.name, primitive_type=PrimitiveType.TOOL, **defined)


def _opened(call: ApiCall, row: PrimitiveRow, signed: str) -> TrialState:
    """Return the state of the round before. Raises ProblemError."""
    try:
        return TrialState(*signing.loads(signed, salt=_salt(call, row), max_age=_SECONDS))
    except (signing.BadSignature, ValueError, TypeError):
        fault = FieldFault("/state", "state", "It is not that of a trial of yours of this tool.")
        message = "The trial cannot go on."
        raise ProblemError(ProblemType.INVALID, message, [fault]) from None


def _salt(call: ApiCall, row: PrimitiveRow) -> str:
    fields = ",".join(TrialState._fields)
    return f"{_SALT}:{fields}:{call.credential.user.pk}:{call.tenant.pk}:{row.id}"
