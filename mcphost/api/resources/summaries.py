"""Summaries: the figures of a tenant or of the platform over a period, as numbers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Self
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import FieldFault, ProblemError, ProblemType
from mcphost.api.representations import ListQuery, Representation, Time
from mcphost.audit.summaries import selectors
from mcphost.audit.summaries.figures import CallNumbers, Dimension, FunnelRow, Period, Ranked
from mcphost.catalogue.selectors import counts
from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.listings.input_requests import count_open, count_overdue
from mcphost.listings.stages import STAGES, stage_count
from mcphost.tasks.listing import TaskTally, tallies
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import slugs

TOP: Final = 5
MAX_ROWS: Final = 50

Tenants = frozenset[UUID] | None
"""Those whose figures are read; None: all."""


class FiguresRepresentation(Representation):
    """The figures of calls of a time. `error_rate` is the part of the calls that failed; a call that a person declined
    is no error. Server times are in microseconds, times until a person responded in milliseconds; percentiles are known
    within 5%.

    `endings` counts input requests by how they ended: answered, declined, cancelled, invalid, expired, stopped, never (no
    response) and open; `refused` are request states, responses and messages that were refused.
    """

    calls: int
    errors: int
    declined: int
    error_rate: float | None
    p50_us: int | None
    p95_us: int | None
    input_requests: int
    endings: Mapping[str, int]
    refused: int
    p50_answer_ms: int | None
    p95_answer_ms: int | None
    last_at: datetime | None

    @classmethod
    def of(cls, numbers: CallNumbers) -> Self:
        return cls(
            calls=numbers.calls,
            errors=numbers.errors,
            declined=numbers.declined,
            error_rate=numbers.errors / numbers.calls if numbers.calls else None,
            p50_us=numbers.p50_us,
            p95_us=numbers.p95_us,
            input_requests=numbers.input_requests,
            endings=_by_stage(numbers.endings),
            refused=numbers.endings.get("refused", 0),
            p50_answer_ms=numbers.p50_answer_ms,
            p95_answer_ms=numbers.p95_answer_ms,
            last_at=numbers.last_at,
        )


class SeriesPointRepresentation(Representation):
    """The figures from `at` until before `until`."""

    at: datetime
    until: datetime
    figures: FiguresRepresentation


class RankedRepresentation(Representation):
    """A tool, client or caller with many calls; `name` is null for all those that are counted together."""

    tenant: str
    name: str | None
    calls: int
    errors: int


class CurrentRepresentation(Representation):
    """What waits at the moment: open input requests, those that are overdue, and tasks. `lag_seconds` is how far
    the figures are behind the record, at most."""

    open_input_requests: int
    overdue_input_requests: int
    tasks_working: int
    tasks_waiting: int
    tasks_failed_recently: int
    lag_seconds: float | None


class SummaryRepresentation(Representation):
    """The figures of a period that ends at `as_of`, whose last point is under way; of the period before; point by
    point; and the tools, clients and callers with the most calls. `current` is null if another time than now is
    requested."""

    period: Period
    as_of: datetime
    since: datetime
    total: FiguresRepresentation
    before: FiguresRepresentation
    series: Sequence[SeriesPointRepresentation]
    top_targets: Sequence[RankedRepresentation]
    top_clients: Sequence[RankedRepresentation]
    top_callers: Sequence[RankedRepresentation]
    current: CurrentRepresentation | None


class TenantSummaryRepresentation(SummaryRepresentation):
    """The same of a tenant, with how many primitives it has now, by type and state."""

    primitives: Mapping[str, Mapping[str, int]]


class InputRequestFiguresRepresentation(Representation):
    """What became of the input requests of one target to one client program; both are null for all pairs that are
    counted together. `endings` and `refused` as in `Figures`."""

    tenant: str
    target: str | None
    client: str | None
    input_requests: int
    endings: Mapping[str, int]
    refused: int

    @classmethod
    def of(cls, row: FunnelRow, slug: str) -> Self:
        return cls(
            tenant=slug,
            target=None if row.is_other else row.target,
            client=None if row.is_other else row.client,
            input_requests=row.input_requests,
            endings=_by_stage(row.endings),
            refused=row.endings.get("refused", 0),
        )


class InputRequestSummaryRepresentation(Representation):
    """What became of input requests in a period: in all, and for the pairs of a target and a client that have the most.
    `complete`: no pair is left out."""

    period: Period
    as_of: datetime
    since: datetime
    total: FiguresRepresentation
    rows: Sequence[InputRequestFiguresRepresentation]
    complete: bool


class SummaryQuery(ListQuery):
    """The period of the figures, and its end."""

    period: Period = Field(Period.DAY, description="How far back the figures go.")
    as_of: Time | None = Field(
        None, description="The end of the period; without it, now. Old figures are not kept."
    )

    def end(self, now: datetime) -> datetime:
        """Return the end of the period. Raises ProblemError for a time whose figures are not kept."""
        if self.as_of is None:
            return now
        earliest = selectors.earliest(self.period, now)
        if not earliest <= self.as_of <= now:
            sentence = (
                f"Figures of this period are kept from {earliest:%Y-%m-%dT%H:%M:%SZ} until now."
            )
            fault = FieldFault("as_of", "out_of_range", sentence)
            raise ProblemError(ProblemType.PARAMETERS, sentence, [fault])
        return self.as_of


class PlatformSummary(Endpoint):
    """`/summary`, for staff."""

    @operation(
        ApiOperation(
            "Read the figures of all tenants",
            Permission.VIEW_RECORDS,
            SummaryRepresentation,
            query=SummaryQuery,
        )
    )
    def get(self, call: ApiCall, query: SummaryQuery) -> HttpResponse:
        return call.show(_summary(None, query, call.now))


class TenantSummary(Endpoint):
    """`/tenants/{slug}/summary`."""

    @operation(
        ApiOperation(
            "Read the figures of a tenant",
            Permission.VIEW_RECORDS,
            TenantSummaryRepresentation,
            query=SummaryQuery,
        )
    )
    def get(self, call: ApiCall, query: SummaryQuery) -> HttpResponse:
        own = frozenset({call.tenant.pk})
        by_state = counts(own).get(call.tenant.pk, {})
        primitives = {
            f"{primitive_type.value}s": {
                state.value: by_state.get((primitive_type, state), 0) for state in PrimitiveState
            }
            for primitive_type in PrimitiveType
        }
        summary = _summary(own, query, call.now)
        return call.show(TenantSummaryRepresentation(**dict(summary), primitives=primitives))


class PlatformInputRequestSummary(Endpoint):
    """`/input_request_summary`, for staff."""

    @operation(
        ApiOperation(
            "Read what became of the input requests of all tenants",
            Permission.VIEW_RECORDS,
            InputRequestSummaryRepresentation,
            query=SummaryQuery,
        )
    )
    def get(self, call: ApiCall, query: SummaryQuery) -> HttpResponse:
        return call.show(_input_request_summary(None, query, call.now))


class TenantInputRequestSummary(Endpoint):
    """`/tenants/{slug}/input_request_summary`."""

    @operation(
        ApiOperation(
            "Read what became of the input requests of a tenant",
            Permission.VIEW_RECORDS,
            InputRequestSummaryRepresentation,
            query=SummaryQuery,
        )
    )
    def get(self, call: ApiCall, query: SummaryQuery) -> HttpResponse:
        own = frozenset({call.tenant.pk})
        return call.show(_input_request_summary(own, query, call.now))


def _summary(tenants: Tenants, query: SummaryQuery, now: datetime) -> SummaryRepresentation:
    period, end = query.period, query.end(now)
    tops = [selectors.top(tenants, by, period, end, TOP) for by in Dimension]
    slug_by_tenant = slugs(row.tenant for ranked in tops for row in ranked)
    targets, clients, callers = (_ranked(ranked, slug_by_tenant) for ranked in tops)
    return SummaryRepresentation(
        period=period,
        as_of=end,
        since=period.start(end),
        total=FiguresRepresentation.of(selectors.totals(tenants, period, end)),
        before=FiguresRepresentation.of(selectors.totals(tenants, period, end - period.length)),
        series=[
            SeriesPointRepresentation(
                at=point.at, until=point.until, figures=FiguresRepresentation.of(point.numbers)
            )
            for point in selectors.series(tenants, period, end)
        ],
        top_targets=targets,
        top_clients=clients,
        top_callers=callers,
        current=_current(tenants, now) if query.as_of is None else None,
    )


def _current(tenants: Tenants, now: datetime) -> CurrentRepresentation:
    of_tenants = tallies(tenants).values()
    tally = TaskTally(*(sum(counted) for counted in zip(*of_tenants, strict=True)))
    lag = selectors.lag(now)
    return CurrentRepresentation(
        open_input_requests=count_open(tenants, now),
        overdue_input_requests=count_overdue(tenants, now),
        tasks_working=tally.working,
        tasks_waiting=tally.waiting,
        tasks_failed_recently=tally.failed,
        lag_seconds=None if lag is None else lag.total_seconds(),
    )


def _input_request_summary(
    tenants: Tenants, query: SummaryQuery, now: datetime
) -> InputRequestSummaryRepresentation:
    period, end = query.period, query.end(now)
    funnel = selectors.funnel(tenants, period, end, limit=MAX_ROWS)
    slug_by_tenant = slugs(row.tenant for row in funnel.rows)
    return InputRequestSummaryRepresentation(
        period=period,
        as_of=end,
        since=period.start(end),
        total=FiguresRepresentation.of(selectors.totals(tenants, period, end)),
        rows=[
            InputRequestFiguresRepresentation.of(row, slug_by_tenant.get(row.tenant, ""))
            for row in funnel.rows
        ],
        complete=not funnel.is_cut,
    )


def _ranked(
    rows: Iterable[Ranked], slug_by_tenant: Mapping[UUID | None, str]
) -> list[RankedRepresentation]:
    return [
        RankedRepresentation(
            tenant=slug_by_tenant.get(row.tenant, ""),
            name=None if row.is_other else row.name,
            calls=row.calls,
            errors=row.errors,
        )
        for row in rows
    ]


def _by_stage(endings: Mapping[str, int]) -> dict[str, int]:
    return {stage: stage_count(endings, stage) for stage in STAGES}
