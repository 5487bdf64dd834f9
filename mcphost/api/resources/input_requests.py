"""Input requests: what tools asked of people, and what became of it; their texts for auditors, each view recorded."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, Self
from uuid import UUID

from django.http import HttpResponse
from django.utils import timezone
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import ListPage, PagedQuery, Representation, Time
from mcphost.api.resources.calls import (
    CallerRepresentation,
    CallPayloadsRepresentation,
    CancellationFields,
    cancel_call,
    cursor_id,
    key_of_id,
    read_payloads,
)
from mcphost.audit import call_list, question_list, selectors
from mcphost.audit.entries import EntryView
from mcphost.audit.question_list import Counted, QuestionFilter
from mcphost.audit.summaries.figures import Period
from mcphost.audit.timeline import TimelineAnswer, TimelineQuestion
from mcphost.listings.input_requests import (
    ListedInputRequest,
    in_stage,
    is_in_stage,
    listed_rows,
)
from mcphost.tenants.access import tenants_where
from mcphost.tenants.roles import Permission


class InputRequestRepresentation(Representation):
    """An input request. `state` is the outcome of its first response, or why it has none: open, expired, lost, never,
    repeated or stopped. `due_at` is from when an open one is overdue, by the target time of its tool.

    `answered_ms` is how long the person took, `ran` the outcome of the round that took the response in, `call_state` the
    state of the call.
    """

    id: UUID
    tenant: str
    at: datetime
    call: UUID
    round: int
    key: str
    method: str
    mode: str
    target: str
    target_version: str
    caller: CallerRepresentation
    client_name: str
    client_version: str
    delivery: str
    state: str
    expires_at: datetime | None
    target_seconds: float | None
    due_at: datetime | None
    overdue: bool
    answered_at: datetime | None
    answered_by: str
    evidence: str
    answered_ms: int | None
    ran: str
    call_state: str

    @classmethod
    def of(cls, row: ListedInputRequest) -> Self:
        question = row.question
        caller = CallerRepresentation(
            kind=question.actor_kind,
            id=question.actor_id,
            label=question.caller,
            token_id=question.token_id,
        )
        own = {"tenant", "caller", "state", "target_seconds", "due_at", "overdue"}
        names = set(cls.model_fields) - own - {"answered_ms", "call_state"}
        return cls(
            **{name: getattr(question, name) for name in names},
            tenant=row.slug,
            caller=caller,
            state=row.state,
            target_seconds=None
            if row.target_time is None
            else row.target_time / timedelta(seconds=1),
            due_at=row.due_at,
            overdue=row.is_late,
            answered_ms=question.took_ms,
            call_state=row.call_state,
        )


class InputResponseRepresentation(Representation):
    """A response to an input request: its outcome, why it did not fit if it is invalid, and the outcome of the round
    that took it in; empty if none did."""

    entry: UUID
    at: datetime
    round: int | None
    responder: CallerRepresentation
    outcome: str
    reason: str
    seconds: float | None
    ran: str

    @classmethod
    def of(cls, answer: TimelineAnswer) -> Self:
        entry = answer.entry
        return cls(
            entry=entry.id,
            at=entry.at,
            round=entry.round,
            responder=CallerRepresentation.of(entry),
            outcome=answer.outcome,
            reason=answer.why,
            seconds=answer.seconds,
            ran="" if answer.ran is None else answer.ran.outcome,
        )


class InputResponsesRepresentation(Representation):
    """All responses to an input request, the oldest first."""

    responses: list[InputResponseRepresentation]


class InputRequestQuery(PagedQuery):
    """The filters of the list of input requests."""

    target: str = Field("", max_length=2048, description="A tool's or prompt's name, or a URI.")
    principal: str = Field("", max_length=200, description="An id, or a part of the label.")
    client: str = Field(
        "", max_length=200, description="A part of the client's name; in quotes, all of it."
    )
    state: (
        Literal[
            "open", "overdue", "expiring", "responded", "answered", "declined", "cancelled",
            "invalid", "expired", "stopped", "never",
        ]
        | None
    ) = Field(None, description="How it ended, as figures count it; overdue: open for too long; expiring: open requests to clients that expire within ten minutes; responded: with any response.")  # fmt: skip
    counted: Period | None = Field(
        None, description="Only those that the figures of this period count."
    )
    since: Time | None = Field(None, description="Inclusive.")
    until: Time | None = Field(None, description="Exclusive.")

    def question_filter(self, tenants: frozenset[UUID] | None, now: datetime) -> QuestionFilter:
        """Return the filter as the selector takes it."""
        filters = QuestionFilter(
            tenants=tenants,
            target=self.target,
            principal=self.principal,
            client=self.client,
            since=self.since,
            until=self.until,
            counted=None if self.counted is None else Counted(self.counted.start(now)),
        )
        return in_stage(filters, self.state or "", now)


class AllInputRequestQuery(InputRequestQuery):
    """The filters of the list of all tenants."""

    tenant: str = Field("", max_length=200, description="The slug of a tenant.")


class InputRequestListPage(ListPage[InputRequestRepresentation]):
    """Input requests, the newest first. A page may have fewer than `limit` and not be the last."""


class InputRequestCollection(Endpoint):
    """`/tenants/{slug}/input_requests`."""

    @operation(
        ApiOperation(
            "List input requests",
            Permission.VIEW_RECORDS,
            InputRequestListPage,
            query=InputRequestQuery,
        )
    )
    def get(self, call: ApiCall, query: InputRequestQuery) -> HttpResponse:
        return _show_page(call, query, frozenset({call.tenant.pk}))


class AllInputRequestCollection(Endpoint):
    """`/input_requests`, for staff."""

    @operation(
        ApiOperation(
            "List the input requests of all tenants",
            Permission.VIEW_RECORDS,
            InputRequestListPage,
            query=AllInputRequestQuery,
        )
    )
    def get(self, call: ApiCall, query: AllInputRequestQuery) -> HttpResponse:
        return _show_page(call, query, tenants_named(call, query.tenant))


class InputRequestObject(Endpoint):
    """`/tenants/{slug}/input_requests/{input_request_id}`."""

    @operation(
        ApiOperation("Read an input request", Permission.VIEW_RECORDS, InputRequestRepresentation)
    )
    def get(self, call: ApiCall, input_request_id: UUID) -> HttpResponse:
        return call.show(_read(call, input_request_id))


class InputRequestResponses(Endpoint):
    """`/tenants/{slug}/input_requests/{input_request_id}/responses`."""

    @operation(
        ApiOperation(
            "Read what came back for an input request, without its content",
            Permission.VIEW_RECORDS,
            InputResponsesRepresentation,
        )
    )
    def get(self, call: ApiCall, input_request_id: UUID) -> HttpResponse:
        answers = _in_timeline(call, input_request_id).answers
        responses = [InputResponseRepresentation.of(answer) for answer in answers]
        return call.show(InputResponsesRepresentation(responses=responses))


class InputRequestPayloads(Endpoint):
    """`/tenants/{slug}/input_requests/{input_request_id}/payloads`."""

    @operation(
        ApiOperation(
            "Read the message and schema of an input request and its responses, as an auditor; each view is recorded",
            Permission.VIEW_PAYLOADS,
            CallPayloadsRepresentation,
        )
    )
    def get(self, call: ApiCall, input_request_id: UUID) -> HttpResponse:
        question = _in_timeline(call, input_request_id)
        entries: Sequence[EntryView] = [
            question.entry,
            *(answer.entry for answer in question.answers),
        ]
        return call.show(read_payloads(call, entries))


class InputRequestCancellation(Endpoint):
    """`/tenants/{slug}/input_requests/{input_request_id}/cancel`."""

    @operation(
        ApiOperation(
            "Cancel the call that waits for an input request",
            Permission.CANCEL_CALLS,
            InputRequestRepresentation,
            body=CancellationFields,
            example={"reason": "The order was withdrawn."},
        )
    )
    def post(self, call: ApiCall, body: CancellationFields, input_request_id: UUID) -> HttpResponse:
        row = _read(call, input_request_id)

        def cancel() -> InputRequestRepresentation:
            cancel_call(call, row.call, body)
            call.now = timezone.now()  # lists read the record up to it
            return _read(call, input_request_id)

        return call.perform(cancel)


def tenants_named(call: ApiCall, slug: str) -> frozenset[UUID] | None:
    """Return the tenant that a filter of the platform names, as a set; None means all tenants."""
    if not slug:
        return None
    named = tenants_where(call.credential.user, Permission.VIEW_RECORDS).filter(slug=slug)
    return frozenset(named.values_list("id", flat=True))


def _show_page(
    call: ApiCall, query: InputRequestQuery, tenants: frozenset[UUID] | None
) -> HttpResponse:
    filters = query.question_filter(tenants, call.now)
    page = question_list.questions(filters, call.now, after=cursor_id(call), limit=call.limit)
    rows = listed_rows(page.questions, call.now)
    items = [
        InputRequestRepresentation.of(row) for row in rows if is_in_stage(row, query.state or "")
    ]
    return call.show_portion(InputRequestListPage, items, key_of_id(page.after))


def _read(call: ApiCall, input_request_id: UUID) -> InputRequestRepresentation:
    question = question_list.question(input_request_id, frozenset({call.tenant.pk}), call.now)
    if question is None:
        raise not_found()
    (row,) = listed_rows([question], call.now)
    return InputRequestRepresentation.of(row)


def _in_timeline(call: ApiCall, input_request_id: UUID) -> TimelineQuestion:
    """The input request in the timeline of its call; without its responses if the call has too many entries."""
    row, own = _read(call, input_request_id), frozenset({call.tenant.pk})
    timeline = call_list.call(row.call, own, call.now)
    for question in () if timeline is None else timeline.questions:
        if question.entry.id == input_request_id:
            return question
    entry = selectors.entry(input_request_id, own)
    if entry is None:
        raise not_found()
    return TimelineQuestion(entry, row.state, row.expires_at)
