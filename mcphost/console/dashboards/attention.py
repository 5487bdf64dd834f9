"""What needs attention, each in one line with a link to where it is fixed.

A line is shown to users who may see what it is about and open the page that it links to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, Literal
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import reverse

from mcphost.audit.call_list import WaitingQuestion
from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.summaries.batches import ERROR
from mcphost.audit.summaries.figures import Dimension, Period, Ranked
from mcphost.catalogue import kinds
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import Can
from mcphost.console.dashboards.calls_behind import NO_LISTS, CallsBehind
from mcphost.console.return_links import list_with
from mcphost.console.templatetags.console import nearly
from mcphost.identity.selectors import TokenListing, expiring
from mcphost.listings.input_requests import count_open
from mcphost.listings.stages import EXPIRES_SOON, EXPIRING
from mcphost.observability import health
from mcphost.tenants.access import allowed, tenants_where
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import slugs
from mcphost.vault import listing

TOKEN_SOON: Final = timedelta(days=7)
"""A token is about to expire within this time, or within the last quarter of a shorter life."""
KEY_SOON: Final = timedelta(hours=1)
SPIKE_ERRORS: Final = 10
"""Fewer errors in an hour are no spike."""
SPIKE_RATE: Final = 0.05
SPIKE_TIMES: Final = 3
"""A spike is at least this part of the calls, and so many times that of the day before."""
MAX_OF_EACH: Final = 3
"""Lines about things of the same type; one more line counts the others."""
_MAX_TOKENS: Final = 100
_MAX_TARGETS: Final = 100
_MAX_SPIKING: Final = 10

Tone = Literal["bad", "warn", "info"]
_ICONS: Final[Mapping[Tone, str]] = {"bad": "error", "warn": "warning", "info": "info"}
"""The tones, the most urgent first."""


@dataclass(frozen=True, slots=True)
class Hand:
    """One line: what it is about (text from outside), the rest of the sentence, and where to go.

    `tenant` is the slug, where a page shows several tenants.
    """

    tone: Tone
    about: str
    text: str
    url: str
    verb: str
    tenant: str = ""

    @property
    def icon(self) -> str:
        """The name of its icon."""
        return _ICONS[self.tone]


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at what: `records` are the tenants whose records the user may read, None is all.

    `tenant` is that of the page; without one, the page shows several tenants.
    """

    user: User
    records: frozenset[UUID] | None
    tenant: Tenant | None = None

    def tenant_label(self, slug: str) -> str:
        """Return the slug that a line shows."""
        return "" if self.tenant is not None else slug


def hands(
    viewer: Viewer, shown: Sequence[Tenant], waiting: Sequence[WaitingQuestion], now: datetime
) -> tuple[Hand, ...]:
    """Return all lines, the most urgent first; broken primitives are those of the tenants `shown`."""
    lines = chain(
        platform(viewer.user, now) if viewer.tenant is None else (),
        broken(viewer, shown),
        error_spikes(viewer, now),
        open_requests(viewer, waiting, now),
        tokens(viewer, now),
    )
    return tuple(sorted(lines, key=lambda hand: list(_ICONS).index(hand.tone)))


def open_requests(
    viewer: Viewer, waiting: Iterable[WaitingQuestion], now: datetime
) -> Iterator[Hand]:
    """Yield the open input requests of clients near their end, the soonest first."""
    near = [question for question in waiting if question.expires_at - now <= EXPIRES_SOON]
    slug_by_tenant = slugs(question.entry.tenant for question in near[: MAX_OF_EACH + 1])
    for question in near[:MAX_OF_EACH]:
        slug = slug_by_tenant[question.entry.tenant]
        yield Hand(
            "warn",
            question.entry.target,
            f"waits for an answer: its question expires {_within(question.expires_at - now)}.",
            reverse("admin:call", args=[slug, question.entry.call]),
            "View call",
            viewer.tenant_label(slug),
        )
    if len(near) > MAX_OF_EACH:
        # More may be near their end than were read.
        count = count_open(viewer.records, now, until=now + EXPIRES_SOON)
        all_of_them = f"{max(count, len(near))} open questions expire within ten minutes."
        slug = slug_by_tenant[near[MAX_OF_EACH].entry.tenant]
        url = _questions(viewer, slug, state=EXPIRING)
        yield Hand("warn", "", f"In all, {all_of_them}", url, "View questions")


def tokens(viewer: Viewer, now: datetime) -> Iterator[Hand]:
    """Yield the tokens about to expire, of tenants where the user manages tokens."""
    expiring_tokens = expiring(_managed(viewer), now, now + TOKEN_SOON, _MAX_TOKENS)
    near = [token for token in expiring_tokens if _remaining_time(token, now) <= _warned(token)]
    for token in near[:MAX_OF_EACH]:
        remaining = _remaining_time(token, now)
        yield Hand(
            "warn" if remaining <= timedelta(days=1) else "info",
            token.name,
            f"is a token of {token.owner} and expires {_within(remaining)}.",
            f"{list_with(reverse('admin:tokens', args=[token.slug]), token.id)}#token-{token.id}",
            "View token",
            viewer.tenant_label(token.slug),
        )
    more = len(near) - MAX_OF_EACH
    if more > 0:
        slug = near[MAX_OF_EACH].slug
        expire = _number(more, "more token expires", "more tokens expire")
        url = reverse("admin:tokens", args=[slug])
        yield Hand(
            "info", "", f"{expire} within a week.", url, "View tokens", viewer.tenant_label(slug)
        )


def error_spikes(viewer: Viewer, now: datetime) -> Iterator[Hand]:
    """Yield targets that failed much more often in the last hour than in the day before."""
    hour = summaries.top(viewer.records, Dimension.TARGET, Period.HOUR, now, _MAX_TARGETS)
    failing = [ranked for ranked in hour if ranked.errors >= SPIKE_ERRORS and not ranked.is_other]
    failing = failing[:_MAX_SPIKING]
    if not failing:
        return
    slug_by_tenant = slugs(ranked.tenant for ranked in failing)
    links = CallsBehind(NO_LISTS, Period.HOUR.start(now))
    # The day ends with a whole hour, so that it contains nothing of the last one.
    day = summaries.top(
        frozenset(ranked.tenant for ranked in failing),
        Dimension.TARGET,
        Period.DAY,
        now - timedelta(hours=2),
        _MAX_SPIKING**2,
        names={ranked.name for ranked in failing},
    )
    usual = {(ranked.tenant, ranked.name): ranked for ranked in day}
    for ranked in failing:
        before = usual.get((ranked.tenant, ranked.name), replace(ranked, calls=0, errors=0))
        if is_spike(ranked, before):
            slug = slug_by_tenant[ranked.tenant]
            yield Hand(
                "bad",
                ranked.name,
                f"failed in {ranked.errors:,} of {ranked.calls:,} calls in the last hour; {_usual(before)}",
                links.of_tenant(slug).url(tool=ranked.name, outcome=ERROR),
                f"View the {ranked.errors:,} that failed",
                viewer.tenant_label(slug),
            )


def _usual(before: Ranked) -> str:
    """Return how many of the calls of the day before failed, as a clause."""
    if not before.calls:
        return "in the day before, no client had called it."
    return f"in the day before, in {before.errors:,} of {before.calls:,}."


def is_spike(hour: Ranked, before: Ranked) -> bool:
    """Return whether the errors of an hour are many, and many more than those of the day before."""
    rate = hour.errors / max(hour.calls, 1)
    usual = before.errors / max(before.calls, 1)
    return hour.errors >= SPIKE_ERRORS and rate >= max(SPIKE_RATE, SPIKE_TIMES * usual)


def broken(viewer: Viewer, shown: Iterable[Tenant]) -> Iterator[Hand]:
    """Yield what is published and cannot be served, of these tenants."""
    for tenant in shown:
        problems = catalogue.problems(tenant.pk)
        for problem in problems[:MAX_OF_EACH]:
            yield Hand(
                "bad",
                problem.name,
                f"is not served: {problem.message}",
                reverse(
                    f"admin:{problem.primitive_type.value}",
                    args=[tenant.slug, problem.primitive_id],
                ),
                f"View {problem.primitive_type.value}",
                viewer.tenant_label(tenant.slug),
            )
        more = len(problems) - MAX_OF_EACH
        if more > 0:
            are = _number(more, "more is", "more are")
            url = reverse("admin:tools", args=[tenant.slug])
            text = f"{are} published and cannot be served."
            yield Hand("bad", "", text, url, "View tools", viewer.tenant_label(tenant.slug))


def platform(user: User, now: datetime) -> Iterator[Hand]:
    """Yield the problems of this process and of the key ring, for the staff who can mend them."""
    can = Can(user, None)
    if can[Permission.MANAGE_TENANT]:
        status, functions = reverse("admin:status"), reverse("admin:all_functions")
        for part, problem in health.problems().items():
            yield Hand("bad", "", f"{part}: {problem}", status, "Status")
        for part, problem in health.warnings().items():
            yield Hand("warn", "", f"{part}: {problem}", status, "Status")
        for message in chain.from_iterable(kind.check() for kind in kinds.KINDS.values()):
            yield Hand("bad", "", str(message), functions, "Python functions")
    if can[Permission.MANAGE_KEYS]:
        for key in listing.retiring(now):
            if key.in_flight and key.until is not None and key.until - now <= KEY_SOON:
                text = f"is a ring key that retires {_within(key.until - now)}; {key.waiting}."
                yield Hand("warn", key.id, text, reverse("admin:keys"), "View keys")


def _managed(viewer: Viewer) -> frozenset[UUID] | None:
    """Return the tenants of the page in which the user manages tokens; None for all."""
    if viewer.tenant is not None:
        may = allowed(viewer.user, viewer.tenant, Permission.MANAGE_TOKENS)
        return frozenset({viewer.tenant.pk} if may else ())
    if allowed(viewer.user, None, Permission.MANAGE_TOKENS):
        return None
    managed = tenants_where(viewer.user, Permission.MANAGE_TOKENS)
    return frozenset(managed.values_list("pk", flat=True))


def _remaining_time(token: TokenListing, now: datetime) -> timedelta:
    return timedelta.max if token.expires_at is None else token.expires_at - now


def _warned(token: TokenListing) -> timedelta:
    """Return how long before its end a token is said to expire: later if its whole life is short."""
    return min(TOKEN_SOON, _remaining_time(token, token.created_at) / 4)


def _questions(viewer: Viewer, slug: str, **filters: str) -> str:
    """Return the address of the list of questions: of all tenants where the user may see that list."""
    everywhere = viewer.tenant is None and allowed(viewer.user, None, Permission.VIEW_RECORDS)
    name = "all_input_requests" if everywhere else "input_requests"
    path = reverse(f"admin:{name}", args=[] if everywhere else [slug])
    return f"{path}?{urlencode(filters)}"


def _number(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def _within(remaining: timedelta) -> str:
    """Return a time that is left in words: `in 5 minutes`."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        count = int(nearly(remaining).total_seconds() // size)
        if count:
            return f"in {_number(count, unit, f'{unit}s')}"
    return "in less than a minute"
