"""The numbers of single tools, prompts and resources, for their lists and pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.summaries.figures import CallNumbers, Period
from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.console.dashboards.charts import Chart, ChartSpan
from mcphost.console.dashboards.panels import (
    HIGH,
    Tile,
    calls_chart,
    error_rate,
    latency,
    tiles,
)
from mcphost.console.dashboards.scales import NOTHING, grouped
from mcphost.console.periods import AskedPeriod
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


@dataclass(frozen=True, slots=True)
class UsePage:
    """The numbers on a primitive's page; `lines` are what became of its input requests, by client."""

    tiles: Sequence[Tile]
    chart: Chart
    lines: Sequence[FunnelLine]
    url: str
    empty: bool


def counted(primitive_type: PrimitiveType) -> bool:
    """Return whether the calls of a type can be told apart: those of a template name other URIs."""
    return primitive_type is not PrimitiveType.TEMPLATE


def uses(tenant: Tenant, rows: Iterable[PrimitiveRow], now: datetime) -> Mapping[UUID, Use]:
    """Return the numbers of a tenant's primitives in the last 7 days, by their ids."""
    numbers_by_target = summaries.by_target(tenant.pk, LISTED, now)
    return {row.id: _use(tenant, row, numbers_by_target.get(_target(row), _NONE)) for row in rows}


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
    lines = [
        line(client_row, tenant.slug, {"counted": period.value})
        for client_row in funnel.rows
        if client_row.input_requests
    ]
    return UsePage(
        tiles=tuple(tiles(total, _NONE, period)),
        chart=calls_chart(spans, [point.numbers for point in points], total),
        lines=lines,
        url=_calls(tenant, row, period),
        empty=not total.calls,
    )


def _use(tenant: Tenant, row: PrimitiveRow, numbers: CallNumbers) -> Use:
    return Use(
        calls=grouped(numbers.calls) if numbers.calls else NOTHING,
        errors=f"{grouped(numbers.errors)} ({error_rate(numbers)})" if numbers.errors else NOTHING,
        high=numbers.errors > HIGH * numbers.calls,
        p95=latency(numbers.p95_us),
        last_at=numbers.last_at,
        url=_calls(tenant, row, LISTED) if numbers.calls else "",
    )


def _target(row: PrimitiveRow) -> str:
    """Return the target of the calls of a primitive, as the record has it."""
    return row.uri or row.name


def _calls(tenant: Tenant, row: PrimitiveRow, period: Period) -> str:
    query = urlencode({"tool": _target(row), "period": period.value})
    return f"{reverse('admin:calls', args=[tenant.slug])}?{query}"
