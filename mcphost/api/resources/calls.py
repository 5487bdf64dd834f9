"""Calls with their rounds, input requests and responses; payloads for auditors, each view recorded."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Self
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.paging import Key
from mcphost.api.problems import ProblemError, ProblemType, not_found
from mcphost.api.representations import Fields, ListPage, PagedQuery, Representation, Time
from mcphost.audit import call_list, selectors
from mcphost.audit.call_list import ListedCall
from mcphost.audit.entries import EntryView, PayloadView
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.services import record
from mcphost.audit.timeline import Timeline
from mcphost.listings.calls import named_calls
from mcphost.serving.execution import cancelling
from mcphost.serving.execution.cancelling import MAX_REASON, CancelResult, plain_reason
from mcphost.tenants.roles import Permission

PAYLOAD_VIEWED: Final = "payload.viewed"
_NOT_CANCELLED: Final = {
    CancelResult.RUNS: "A response was faster: the call runs, and is not cancelled.",
    CancelResult.OVER: "The call does not wait for a response, so there is nothing to cancel.",
}


class CallerRepresentation(Representation):
    """The caller, as it was recorded: a person or service account, by the credential."""

    kind: str
    id: str
    label: str
    token_id: str

    @classmethod
    def of(cls, entry: EntryView) -> Self:
        return cls(
            kind=entry.actor_kind,
            id=entry.actor_id,
            label=entry.actor_label,
            token_id=entry.token_id,
        )


class CallRepresentation(Representation):
    """A call. `state` is the outcome of its last round, or open, expired, lost, unknown, cancelled or declined.

    `server_us` is the server time of all rounds, `waited_us` the time between them and after the last, in microseconds.
    `input_requests` are how many were made, `waiting` the keys of those that can still be answered.
    """

    id: UUID
    method: str
    target: str
    target_version: str
    state: str
    at: datetime = Field(description="The time of its last activity.")
    caller: CallerRepresentation
    client_name: str
    client_version: str
    revision: str
    delivery: str
    rounds: int
    server_us: int | None
    waited_us: int | None
    input_requests: int
    waiting: Sequence[str]
    expires_at: datetime | None
    reason: str
    trace_id: str

    @classmethod
    def of(cls, row: ListedCall) -> Self:
        entry = row.entry
        assert entry.call is not None
        return cls(
            id=entry.call,
            method=entry.method,
            target=entry.target,
            target_version=entry.target_version,
            state=row.state,
            at=entry.at,
            caller=CallerRepresentation.of(entry),
            client_name=entry.client_name,
            client_version=entry.client_version,
            revision=entry.revision,
            delivery=entry.delivery,
            rounds=entry.round or 0,
            server_us=_microseconds(row.server),
            waited_us=_microseconds(row.waited),
            input_requests=row.questions,
            waiting=row.waiting,
            expires_at=row.expires_at,
            reason=entry.reason,
            trace_id=entry.trace_id,
        )


def _microseconds(length: timedelta | None) -> int | None:
    return None if length is None else length // timedelta(microseconds=1)


class EntryRepresentation(Representation):
    """An entry of the audit log, without its payload. `duration_us` is server time in microseconds."""

    id: UUID
    at: datetime
    action: str
    actor: CallerRepresentation
    call: UUID | None
    round: int | None
    duration_us: int | None
    target: str
    target_version: str
    outcome: str
    reason: str
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, entry: EntryView) -> Self:
        names = set(cls.model_fields) - {"actor"}
        values = {name: getattr(entry, name) for name in names}
        return cls(actor=CallerRepresentation.of(entry), **values)


class CallHistoryRepresentation(Representation):
    """A call with all of its entries, the oldest first: rounds, input requests and responses."""

    id: UUID
    state: str
    expires_at: datetime | None
    entries: list[EntryRepresentation]

    @classmethod
    def of(cls, call_id: UUID, timeline: Timeline) -> Self:
        return cls(
            id=call_id,
            state=timeline.state,
            expires_at=timeline.expires_at,
            entries=[EntryRepresentation.of(entry) for entry in timeline.entries],
        )


class PayloadRepresentation(Representation):
    """The payload of an entry: `content`, or why it is not there. `left_out`: too large to be read with
    the others."""

    entry: UUID
    content: Any
    erased_at: datetime | None
    problem: str
    left_out: bool

    @classmethod
    def of(cls, view: PayloadView) -> Self:
        return cls(**{name: getattr(view, name) for name in cls.model_fields})


class CallPayloadsRepresentation(Representation):
    """The payloads of a call, in the order of its entries."""

    payloads: list[PayloadRepresentation]


class CallQuery(PagedQuery):
    """The filters of the list of calls. They apply to the last round of a call."""

    target: str = Field("", max_length=2048, description="A tool's or prompt's name, or a URI.")
    state: (
        Literal[
            "open", "expired", "lost", "complete", "declined", "tool_error", "invalid_arguments",
            "invalid_result", "timed_out", "overloaded", "capability_missing", "asked_too_often",
            "journal_too_large", "crashed", "yielded", "deferred", "cancelled", "unknown", "error", "no_error",
        ]
        | None
    ) = Field(None, description="How it ended; error: by any error; no_error: neither by an error nor declined.")  # fmt: skip
    input_requests: (
        Literal[
            "asked", "accept", "decline", "cancel", "received", "failed", "invalid", "unasked", "refused",
        ]
        | None
    ) = Field(None, description="Calls with any, or with a response like this; unasked: to none that was made; refused: with anything rejected.")  # fmt: skip
    made_by: Literal["clients", "trials"] | None = None
    words: str = Field("", max_length=200, description="Words of the error.")
    principal: str = Field("", max_length=200, description="An id, or a part of the label.")
    client: str = Field("", max_length=200, description="A part of the client's name.")
    trace: str = Field("", max_length=64)
    since: Time | None = Field(None, description="Inclusive.")
    until: Time | None = Field(None, description="Exclusive.")

    def entry_filter(self, tenants: frozenset[UUID] | None) -> EntryFilter:
        """Return the filter as the selector takes it."""
        return EntryFilter(
            tenants=tenants,
            target=self.target,
            outcome=self.state or "",
            questions=self.input_requests or "",
            made_by=self.made_by or "",
            words=self.words,
            principal=self.principal,
            client=self.client,
            trace=self.trace,
            since=self.since,
            until=self.until,
        )


class CallListPage(ListPage[CallRepresentation]):
    """Calls, the most recently active first. A page may have fewer than `limit` and not be the last."""


class CancellationFields(Fields):
    """Why a call is cancelled: its caller reads it."""

    reason: str = Field(min_length=1, max_length=MAX_REASON, pattern=r"\w")


class CallCollection(Endpoint):
    """`/tenants/{slug}/calls`."""

    @operation(ApiOperation("List calls", Permission.VIEW_RECORDS, CallListPage, query=CallQuery))
    def get(self, call: ApiCall, query: CallQuery) -> HttpResponse:
        page = call_list.calls(
            query.entry_filter(frozenset({call.tenant.pk})),
            call.now,
            after=cursor_id(call),
            limit=call.limit,
        )
        items = [CallRepresentation.of(row) for row, _ in named_calls(page.calls)]
        return call.show_portion(CallListPage, items, key_of_id(page.after))


class CallObject(Endpoint):
    """`/tenants/{slug}/calls/{call_id}`."""

    @operation(ApiOperation("Read a call", Permission.VIEW_RECORDS, CallHistoryRepresentation))
    def get(self, call: ApiCall, call_id: UUID) -> HttpResponse:
        return call.show(CallHistoryRepresentation.of(call_id, _timeline(call, call_id)))


class CallPayloads(Endpoint):
    """`/tenants/{slug}/calls/{call_id}/payloads`."""

    @operation(
        ApiOperation(
            "Read what was sent, asked and answered in a call, as an auditor; each view is recorded",
            Permission.VIEW_PAYLOADS,
            CallPayloadsRepresentation,
        )
    )
    def get(self, call: ApiCall, call_id: UUID) -> HttpResponse:
        return call.show(read_payloads(call, _timeline(call, call_id).entries))


class CallCancellation(Endpoint):
    """`/tenants/{slug}/calls/{call_id}/cancel`."""

    @operation(
        ApiOperation(
            "Cancel a call that waits for a response",
            Permission.CANCEL_CALLS,
            CallHistoryRepresentation,
            body=CancellationFields,
            example={"reason": "The order was withdrawn."},
        )
    )
    def post(self, call: ApiCall, body: CancellationFields, call_id: UUID) -> HttpResponse:
        _timeline(call, call_id)

        def cancel() -> CallHistoryRepresentation:
            cancel_call(call, call_id, body)
            return CallHistoryRepresentation.of(call_id, _timeline(call, call_id))

        return call.perform(cancel)


def read_payloads(call: ApiCall, entries: Sequence[EntryView]) -> CallPayloadsRepresentation:
    """Read the payloads of these entries of one call, in their order, and record that they are read."""
    views = selectors.payloads([entry.id for entry in entries], call.tenant.pk)
    read = [
        entry
        for entry in entries
        if entry.id in views and not (views[entry.id].erased_at or views[entry.id].left_out)
    ]
    if read:
        ids, call_id = [str(entry.id) for entry in read], str(read[0].call or "")
        record(
            PAYLOAD_VIEWED,
            actor=call.actor,
            tenant=call.tenant.pk,
            target=ids[0] if len(ids) == 1 else call_id,
            facts={"tool": read[0].target, "call": call_id, "payloads": ids},
        )
    shown = [PayloadRepresentation.of(views[entry.id]) for entry in entries if entry.id in views]
    return CallPayloadsRepresentation(payloads=shown)


def cancel_call(call: ApiCall, call_id: UUID, body: CancellationFields) -> None:
    """Cancel a call that waits for a response. Raises ProblemError if it does not wait."""
    reason = plain_reason(body.reason)
    result = cancelling.cancel(call_id, call.tenant.pk, reason, call.actor)
    if result is not CancelResult.DONE:
        raise ProblemError(ProblemType.CONFLICT, _NOT_CANCELLED[result])


def _timeline(call: ApiCall, call_id: UUID) -> Timeline:
    timeline = call_list.call(call_id, frozenset({call.tenant.pk}), call.now)
    if timeline is None:
        raise not_found()
    return timeline


def cursor_id(call: ApiCall) -> UUID | None:
    """Return the id after which a page of records begins."""
    after = call.after()
    return None if after is None else UUID(str(after[0]))


def key_of_id(last: UUID | None) -> Key | None:
    """Return the key of a page's cursor."""
    return None if last is None else [str(last)]
