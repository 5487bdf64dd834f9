"""Pages of what became of questions, by tool and client: a table with a bar for each row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.summaries.figures import FunnelRow, Period
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    of_platform,
    of_tenant,
    page_of,
    show,
)
from mcphost.console.periods import asked_period, counted_in
from mcphost.console.records.filters import RecordFilter, tenants_of
from mcphost.console.records.stages import NONE_ENDED, STAGE_WORDS, accepted_share
from mcphost.listings.stages import STAGES, stage_count
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import slugs

MAX_ROWS: Final = 50
WIDTH: Final = 200
"""Width of a whole bar."""
TITLE: Final = "Question statistics"
USUAL: Final = ("answered", "declined", "cancelled", "expired", "open")
"""The columns that the table always has. The others are there if they count anything."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar. `stage` is the name of its colour, `word` what it is called."""

    stage: str
    label: str
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class FunnelLine:
    """A row: what became of the requests of one tool to one client program."""

    slug: str
    row: FunnelRow
    query: str
    counts: Sequence[int]
    refused: int
    segments: Sequence[Segment]

    @property
    def by_stage(self) -> Mapping[str, int]:
        return dict(zip(STAGES, self.counts, strict=True))

    @property
    def stage_queries(self) -> Mapping[str, str]:
        """The query strings of the lists of exactly the questions that each stage counts."""
        return {stage: f"{self.query}&state={stage}" for stage in STAGES}

    @property
    def share(self) -> str:
        """Which part of the questions that are no longer open was accepted; a dash without any."""
        return accepted_share(self.row.input_requests, self.row.endings)

    @property
    def share_words(self) -> str:
        """The same as the end of a sentence."""
        if self.share == NONE_ENDED:
            return "none of them ended"
        return f"{self.share} accepted" + (" of those that ended" if self.by_stage["open"] else "")


@of_tenant(Permission.VIEW_RECORDS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show what became of the input requests of one tenant."""
    crumb = page_of(tenant, "input_requests", "Questions")
    return _listing(request, frozenset({tenant.pk}), crumb)


@of_platform(Permission.VIEW_RECORDS)
@require_safe
def of_all(request: SignedInRequest) -> HttpResponseBase:
    """Show what became of the input requests of all tenants, for platform staff."""
    crumb = Crumb("All questions", reverse("admin:all_input_requests"))
    return _listing(request, tenants_of(RecordFilter.of(request.GET)), crumb)


def _listing(
    request: SignedInRequest, tenants: frozenset[UUID] | None, crumb: Crumb
) -> HttpResponseBase:
    period_choice = asked_period(request.GET, Period.WEEK)
    now = timezone.now()
    funnel = summaries.funnel(tenants, period_choice.period, now, limit=MAX_ROWS)
    total = summaries.totals(tenants, period_choice.period, now)
    period = counted_in(period_choice.period)
    if request.GET.get("tenant"):
        period["tenant"] = request.GET["tenant"]
    whole = line(FunnelRow(UUID(int=0), "", "", total.input_requests, total.endings), "", period)
    slug_by_tenant = slugs(row.tenant for row in funnel.rows)
    lines = [line(row, slug_by_tenant.get(row.tenant, ""), period) for row in funnel.rows]
    return show(
        request,
        "records/funnel.html",
        TITLE,
        crumb,
        list_url=crumb.url,
        lines=lines,
        whole=whole,
        stages=[
            (stage, label)
            for stage, label in STAGE_WORDS.items()
            if stage in USUAL or whole.by_stage[stage]
        ],
        period_choice=period_choice,
        is_cut=funnel.is_cut,
    )


def line(row: FunnelRow, slug: str, period: Mapping[str, str]) -> FunnelLine:
    """Return a row of the table with its bar; `period` is that of the figures, as a filter of questions."""
    named = {"tool": row.target, "client": f'"{row.client}"'} if row.target else {}
    counts = [stage_count(row.endings, stage) for stage in STAGES]
    whole = max(1, sum(counts))
    segments, x = [], 0.0
    for stage, count in zip(STAGES, counts, strict=True):
        width = round(WIDTH * count / whole, 2)
        if count:
            segments.append(Segment(stage, STAGE_WORDS[stage], count, round(x, 2), width))
        x += width
    return FunnelLine(
        slug, row, urlencode({**named, **period}), counts, row.endings.get("refused", 0), segments
    )
