"""The figures of calls, as the dashboard reads them."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.summaries import batches, selectors
from mcphost.audit.summaries.selectors import Dimension, Period
from mcphost.runtime.call import Client, Delivery
from tests.audit.recorded_calls import ACME, HALF_HOUR, MINUTE, OTHER, Story, asking, follow, plain
from tests.audit.recorded_calls import keep as keep_entries

pytestmark = pytest.mark.django_db

OURS = frozenset({ACME})


@pytest.fixture
def now() -> datetime:
    return timezone.now()


def keep(*stories: Story) -> None:
    keep_entries(*stories)
    follow()


def test_calls_errors_and_latency_are_counted(now: datetime) -> None:
    keep(*(plain() for _ in range(3)), plain(outcome="tool_error"), plain(tenant=OTHER))
    found = selectors.totals(OURS, Period.HOUR, now)
    assert (found.calls, found.errors, found.input_requests) == (4, 1, 0)
    assert found.p95_us is not None
    assert abs(found.p95_us - 3000) <= 150
    assert selectors.totals(None, Period.HOUR, now).calls == 5
    assert selectors.totals(frozenset(), Period.HOUR, now).calls == 0


@pytest.mark.parametrize(
    ("script", "errors"),
    [
        ("answer a decline; end tool_error", 0),
        ("answer a cancel; end tool_error", 0),
        ("answer a accept; end tool_error", 1),
        ("answer a received; end tool_error", 1),
        ("answer a decline; end crashed", 1),
        ("answer a decline; ask b; back; answer b; end tool_error", 1),
    ],
)
def test_a_tool_error_after_a_declined_input_request_is_not_counted_as_an_error(
    now, script, errors
):
    keep(asking("a").play("back").play(script))
    found = selectors.totals(OURS, Period.DAY, now)
    assert (found.calls, found.errors) == (1, errors)


def test_input_requests_are_counted_by_outcome(now: datetime) -> None:
    answered = asking("a", "b").play("back; answer a; answer b cancel; end")
    declined = asking("a").play("back; answer a decline; end")
    keep(answered, declined, asking("a"), asking("a", ago=2 * HALF_HOUR))
    found = selectors.totals(OURS, Period.DAY, now)
    assert (found.calls, found.input_requests) == (4, 5)
    assert found.endings == {"accept": 1, "cancel": 1, "decline": 1, "open": 1, "expired": 1}
    assert found.p50_answer_ms is not None
    assert abs(found.p50_answer_ms - 61_500) <= 61_500 * 0.05


def test_console_trials_are_listed_but_not_counted_as_traffic(now: datetime) -> None:
    tried = {"delivery": Delivery.PLAYGROUND, "client": Client("console", "1")}
    trials = [
        Story.of(ACME, "tried", at=now - MINUTE, **tried).play(script)
        for script in ("end", "end tool_error", "ask a")
    ]
    ended = Story.of(ACME, "tried", at=now - MINUTE, **tried).play("ask a")
    ended.back(timedelta()).play("answer a; refuse expired; end crashed")
    keep(plain(), *trials, ended)
    found = selectors.totals(OURS, Period.HOUR, now)
    assert (found.calls, found.errors, found.input_requests, found.endings) == (1, 0, 0, {})
    for dimension in Dimension:
        ranked = selectors.top(OURS, dimension, Period.HOUR, now)
        assert [(each.calls, each.errors) for each in ranked] == [(1, 0)], dimension
    assert list(selectors.by_target(ACME, Period.HOUR, now)) == ["plain"]
    assert selectors.funnel(OURS, Period.HOUR, now, limit=9).rows == ()
    assert sum(each.numbers.calls for each in selectors.series(OURS, Period.HOUR, now)) == 1
    listed = call_list.calls(EntryFilter(tenants=OURS), now).calls
    assert sum(each.entry.delivery == Delivery.PLAYGROUND for each in listed) == 4
    # The first is a part of the name of the other client, too.
    for text in ("n", "console"):
        found_calls = call_list.calls(EntryFilter(tenants=OURS, client=text), now).calls
        assert sum(each.entry.target == "tried" for each in found_calls) == 4
    assert call_list.count_waiting(OURS, now) == 0
    assert call_list.count_waiting(OURS, now, until=now + 2 * HALF_HOUR) == 0
    assert call_list.overdue(OURS, {(ACME, "tried"): 1.0}, now + HALF_HOUR / 2) == ()


@pytest.mark.parametrize("period", list(Period))
def test_the_points_of_a_series_add_up_to_the_totals(period: Period, now: datetime) -> None:
    ago = [*(timedelta(hours=hours) for hours in range(0, 500, 7)), 3 * MINUTE]
    keep(*(plain(ago=each) for each in ago), plain("mine", ago=MINUTE), plain("mine", OTHER))
    for target in (None, "mine", "unknown"):
        points = selectors.series(OURS, period, now, target=target)
        assert len(points) == period.points
        assert 1 < len(points) <= 60
        assert all(one.until == other.at for one, other in pairwise(points))
        assert points[-1].at <= now < points[-1].until
        total = selectors.totals(OURS, period, now).calls
        if target:
            found = selectors.by_target(ACME, period, now).get(target)
            total = found.calls if found else 0
        assert sum(each.numbers.calls for each in points) == total
        assert (total > 0) is (target != "unknown")


def test_the_funnel_has_a_row_per_target_and_client_with_input_requests(now: datetime) -> None:
    keep(asking("a").play("back; answer a; end"), asking("a"), plain())
    (row,) = selectors.funnel(OURS, Period.DAY, now, limit=5).rows
    assert (row.tenant, row.target, row.input_requests) == (ACME, "asking", 2)
    assert row.endings == {"accept": 1, "open": 1}


def test_each_changed_call_is_returned_once_per_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(plain("earlier"))
    before, ours = selectors.newest(), plain()
    keep(ours)
    first = selectors.changed(OURS, before, 100)
    assert first.calls == frozenset({ours.call.id})
    assert selectors.changed(OURS, first.cursor, 100).calls == frozenset()
    keep(plain(tenant=OTHER))
    second = selectors.changed(OURS, first.cursor, 100)
    assert second.calls == frozenset()
    assert second.cursor > first.cursor
    assert selectors.changed(None, before, 1).calls is None, "they are too many"
    monkeypatch.setattr(batches, "KEPT_CHANGES", 2)
    for _ in range(2):
        keep(plain())
    assert selectors.changed(OURS, before, 100) == selectors.CallChanges(None, selectors.newest())
    changes = selectors.changed(OURS, second.cursor, 100)
    assert changes.calls is not None
    assert len(changes.calls) == 2
