"""The numbers of single tools, prompts and resources, for their lists and pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.summaries.batches import ERROR
from mcphost.audit.summaries.figures import CallNumbers, Period
from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.console.dashboards.calls_behind import CallsBehind, tenant_lists, whole
from mcphost.console.dashboards.charts import Chart, ChartSpan
from mcphost.console.dashboards.panels import (
    HIGH,
    Scope,
    Tile,
    calls_chart,
    error_rate,
    latency,
    tiles,
)
from mcphost.console.dashboards.scales import NOTHING, grouped
from mcphost.console.periods import AskedPeriod, counted_in
from mcphost.console.records.funnel import FunnelLine, line
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant

LISTED: Final = Period.WEEK
"""The period of the numbers in lists."""
MAX_CLIENTS: Final = 10
_NONE: Final = CallNumbers()


@dataclass(frozen=True, slots=True)
class Use:
    """The numbers of one primitive in its list; `high` says that many of its calls failed."""

    calls: str
    errors: str
    high: bool
    p95: str
    last_at: datetime | None
    url: str
    errors_url: str


@dataclass(frozen=True, slots=True)
class UsePage:
    """The numbers on a primitive's page; `lines` are what became of its questions, by client, each with
    the address of the questions."""

    tiles: Sequence[Tile]
    chart: Chart
    lines: Sequence[tuple[FunnelLine, str]]
    url: str
    empty: bool


def counted(primitive_type: PrimitiveType) -> bool:
    """Return whether the calls of a type can be told apart: those of a template name other URIs."""
    return primitive_type is not PrimitiveType.TEMPLATE


def uses(tenant: Tenant, rows: Iterable[PrimitiveRow], now: datetime) -> Mapping[UUID, Use]:
    """Return the numbers of a tenant's primitives in the last 7 days, by their ids."""
    numbers_by_target = summaries.by_target(tenant.pk, LISTED, now)
    links = CallsBehind.of(tenant_lists(tenant.slug), LISTED, now)
    return {
        row.id: _use(
            numbers_by_target.get(_target(row), _NONE), Scope(links, {"tool": _target(row)})
        )
        for row in rows
    }


def use_page(
    tenant: Tenant, row: PrimitiveRow, period_choice: AskedPeriod, now: datetime
) -> UsePage:
    """Return the numbers of one primitive over a period."""
    period, target = period_choice.period, _target(row)
    total = summaries.by_target(tenant.pk, period, now).get(target, _NONE)
    points = summaries.series(frozenset({tenant.pk}), period, now, target=target)
    spans = [ChartSpan(point.at, point.until) for point in points]
    tenants = frozenset({tenant.pk})
    funnel = summaries.funnel(tenants, period, now, target=target, limit=MAX_CLIENTS)
    scope = Scope(CallsBehind.of(tenant_lists(tenant.slug), period, now), {"tool": target})
    lines = [
        (
            line(client_row, tenant.slug, counted_in(period)),
            "" if client_row.is_other else scope.questions(1, client=whole(client_row.client)),
        )
        for client_row in funnel.rows
        if client_row.input_requests
    ]
    return UsePage(
        tiles=tuple(tiles(total, None, scope)),
        chart=calls_chart(spans, [point.numbers for point in points], total, scope),
        lines=lines,
        url=scope.url(total.calls),
        empty=not total.calls,
    )


def _use(numbers: CallNumbers, scope: Scope) -> Use:
    return Use(
        calls=grouped(numbers.calls) if numbers.calls else NOTHING,
        errors=f"{grouped(numbers.errors)} ({error_rate(numbers)})" if numbers.errors else NOTHING,
        high=numbers.errors > HIGH * numbers.calls,
        p95=latency(numbers.p95_us),
        last_at=numbers.last_at,
        url=scope.url(numbers.calls),
        errors_url=scope.url(numbers.errors, outcome=ERROR),
    )


def _target(row: PrimitiveRow) -> str:
    """Return the target of the calls of a primitive, as the record has it."""
    return row.uri or row.name
