"""One transaction, one pass and one reader do a limited part of the work, and the rest is done later."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit.models import CallSummary, Entry, Following, RollUp, RollUpChange
from mcphost.audit.records import Actor
from mcphost.audit.selectors import EntryFilter, first_id
from mcphost.audit.services import record
from mcphost.audit.summaries import follower, rollups, selectors, sets, unseen
from mcphost.audit.summaries.figures import Period
from mcphost.audit.summaries.follower import FEW, LEASE, Follower, catch_up
from mcphost.audit.summaries.rollups import KEPT, By, Resolution
from tests.audit.asking import HALF_HOUR, MINUTE, asking, follow, keep, plain, row
from tests.audit.summaries.test_follower import HOUR, check

SECOND = timedelta(seconds=1)

pytestmark = pytest.mark.django_db


def test_the_lease_lasts_as_long_as_a_pass_that_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    follow()
    monkeypatch.setattr(follower, "AT_ONCE", 1)
    clock = [timezone.now()]
    monkeypatch.setattr(timezone, "now", lambda: clock[0])
    keep(*(plain() for _ in range(4)))
    one, other = Follower(), Follower()
    took_over = []

    def pause(seconds: float) -> None:
        clock[0] += LEASE / 2
        took_over.append(other._lease(clock[0]))

    assert one.step(pause).written == 4
    assert took_over == [False] * len(took_over)
    assert len(took_over) > 4
    check(clock[0])


def test_what_a_process_noted_whose_clock_was_ahead_holds_nothing_up() -> None:
    """Before it stopped, or its clock was set back."""
    follow()
    now = timezone.now()
    ahead = dict.fromkeys(("leased_until", "folded_at", "checked_at", "pruned_at"), now + HOUR)
    Following.objects.update(owner=uuid4(), **ahead)
    keep(*(plain() for _ in range(FEW + 1)))
    step = Follower().step()
    assert (step.leads, step.written) == (True, FEW + 1)
    assert not RollUpChange.objects.exists()
    following = Following.objects.get()
    assert all(getattr(following, name) < now + MINUTE for name in ahead)
    check()


@pytest.mark.parametrize("leased", [-MINUTE, MINUTE, None])
def test_a_reader_writes_a_few_calls_and_leaves_more_to_who_follows(leased, monkeypatch):
    now = timezone.now()
    follow()
    Following.objects.update(leased_until=leased and now + leased)
    monkeypatch.setattr(follower, "AT_ONCE", 2)
    folds = Following.objects.get().folds
    keep(plain(), plain())
    catch_up(now)
    assert CallSummary.objects.count() == 2
    if leased == MINUTE:
        assert Following.objects.get().folds == folds, "roll-ups are left to that process, too"
    keep(*(plain() for _ in range(3)))
    catch_up(now)
    assert CallSummary.objects.count() == 2
    Following.objects.update(leased_until=None)
    assert follow() == 3
    check()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("leased", [-MINUTE, MINUTE])
def test_a_reader_reads_entries_from_before_only_if_no_process_follows(leased: timedelta) -> None:
    now = timezone.now()
    keep(plain(), plain())
    follower.begin(now)
    Following.objects.update(leased_until=now + leased)
    catch_up(now)
    assert not CallSummary.objects.exists()
    Following.objects.update(leased_until=None)
    catch_up(now + SECOND)
    assert CallSummary.objects.count() == 2
    check()


@pytest.mark.django_db(transaction=True)
def test_a_page_that_asks_several_questions_of_one_moment_catches_up_once() -> None:
    now = timezone.now()
    keep(plain())
    with CaptureQueriesContext(connection) as counted:
        assert selectors.totals(None, Period.DAY, now).calls == 1
    assert len(counted) > 5
    for _ in range(2):
        with CaptureQueriesContext(connection) as counted:
            assert len(call_list.calls(EntryFilter(None), now).calls) == 1
            assert call_list.waiting(None, now) == ()
        assert not any("audit_following" in each["sql"] for each in counted)
    keep(plain())
    assert selectors.totals(None, Period.DAY, now + SECOND).calls == 2


def test_calls_under_a_lost_key_are_projected_in_portions_and_not_by_readers(monkeypatch):
    monkeypatch.setattr(follower, "DUE_AT_ONCE", 2)
    keep(*(asking() for _ in range(5)))
    follow()
    facts = {"compromised": True, "retired": ["k1"]}
    record("key.rotated", actor=Actor.person(7, "sam"), target="k2", facts=facts)
    catch_up(timezone.now())
    lost = CallSummary.objects.filter(state="lost")
    assert lost.count() == 0
    one = Follower()
    assert [(one.step().more, lost.count()) for _ in range(3)] == [(True, 2), (True, 4), (False, 5)]
    assert Following.objects.get().losses == 1
    check()


def test_a_reader_projects_a_limited_number_of_calls_whose_time_is_over(monkeypatch):
    monkeypatch.setattr(follower, "AT_ONCE", 2)
    keep(*(asking() for _ in range(3)))
    follow()
    later = timezone.now() + 2 * HALF_HOUR
    catch_up(later)
    assert CallSummary.objects.filter(state="expired").count() == 2
    catch_up(later + SECOND)
    assert CallSummary.objects.filter(state="expired").count() == 3
    check(later)


@pytest.mark.parametrize("ago", [2 * MINUTE, MINUTE])
def test_entries_that_are_found_to_be_missing_while_others_are_read_are_read_too(ago, monkeypatch):
    """Another process finds that: the older ones of them, or as many as before."""
    now = timezone.now()
    follow()
    monkeypatch.setattr(unseen, "PORTION", 1)
    oldest = first_id(now - MINUTE)
    Following.objects.update(missing_from=oldest, missing_until=follower._behind_all())
    keep(plain(), plain())
    read = unseen.missing
    overtaken = []

    def read_and_be_overtaken(following: Following) -> tuple[Collection[UUID], UUID | None]:
        found = read(following)
        if not overtaken:
            overtaken.append(True)
            end = follower._behind_all()
            Following.objects.update(missing_from=first_id(now - ago), missing_until=end)
        return found

    monkeypatch.setattr(unseen, "missing", read_and_be_overtaken)
    one = Follower()
    one.step()
    left = Following.objects.get()
    assert left.missing_from == first_id(now - ago)
    assert left.missing_until is not None
    assert not Entry.objects.filter(id__gte=left.missing_until).exists()
    follow(one)
    check()


def test_a_bucket_is_kept_for_as_long_as_its_resolution() -> None:
    keep(plain())
    follow()
    for resolution, kept in KEPT.items():
        rows = RollUp.objects.filter(resolution=resolution)
        bucket = rows.values_list("bucket", flat=True).distinct().get()
        begun = datetime.fromtimestamp(bucket * resolution.seconds, UTC)
        assert rollups.prune(begun + kept) == 0
        assert rollups.prune(begun + kept + timedelta(seconds=resolution.seconds)) > 0
        assert not rows.exists()


def test_old_buckets_are_deleted_in_portions_that_one_index_finds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rollups, "PRUNED_AT_ONCE", 2)
    monkeypatch.setattr(follower, "PRUNED_PORTIONS", 3)
    keep(*(plain(f"tool{number}") for number in range(5)))
    follow()
    old = RollUp.objects.filter(resolution=Resolution.MINUTE)
    assert (before := old.count()) > 8
    later = timezone.now() + timedelta(hours=26)
    monkeypatch.setattr(timezone, "now", lambda: later)
    left = []
    Follower().step(lambda seconds: left.append(old.count()))
    assert left[-1] == before - 6
    assert {a - b for a, b in pairwise(left)} <= {0, 2}
    pruned_at = Following.objects.get().pruned_at
    assert pruned_at is None or pruned_at < later
    Following.objects.update(leased_until=None, owner=None)
    while old.exists():
        follow()
    with CaptureQueriesContext(connection) as counted:
        assert rollups.prune(later) == 0
    selects = [each["sql"] for each in counted if each["sql"].startswith("SELECT")]
    assert len(selects) == len(Resolution) * sum(len(by.whole) for by in By)
    if sets.vendor() == sets.SQLITE:
        plans = str([sets.fetch("EXPLAIN QUERY PLAN " + each) for each in selects])
        assert "audit_rollup_top" in plans
        assert "TEMP B-TREE" not in plans


def test_roll_ups_are_written_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    follow()
    monkeypatch.setattr(rollups, "FOLDED_ROWS", 30)
    monkeypatch.setattr(rollups, "NOTED_AT_ONCE", 5)
    monkeypatch.setattr(rollups, "MOST_NAMES", 12)
    waiting = [asking() for _ in range(3)]
    keep(*waiting, *(plain(f"tool{number}") for number in range(20)))
    rows = [RollUp.objects.count()]
    one = Follower()
    one.step(lambda seconds: rows.append(RollUp.objects.count()))
    one.release()
    assert max(after - before for before, after in pairwise(rows)) <= 30 + 3 * 5
    assert len(set(rows)) > 2
    assert not RollUpChange.objects.exists()
    check()
    more = [each.back().end("tool_error", "no") for each in waiting]
    Entry.objects.bulk_create(map(row, more))
    keep(*(plain(f"tool{number}") for number in range(10, 30)))
    assert follow() == 23
    while rollups.fold(timezone.now()):
        pass
    check()
