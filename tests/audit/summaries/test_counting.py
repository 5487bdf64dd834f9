"""Roll-ups are counted again from the calls of their time, whenever and in whatever order these change."""

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry, Following, RollUp, RollUpDue
from mcphost.audit.selectors import first_id
from mcphost.audit.summaries import counting, selectors
from mcphost.audit.summaries.figures import Period
from mcphost.audit.summaries.follower import Follower
from mcphost.audit.summaries.rollups import Bucket, Resolution, cover
from tests.audit.recorded_calls import ACME, HALF_HOUR, MINUTE, Story, follow, keep, plain, row
from tests.audit.summaries.test_follower import check, keep_new

pytestmark = pytest.mark.django_db

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 5, 4, 12, 0, 2, tzinfo=UTC)


class Clock:
    """What `timezone.now` returns."""

    def __init__(self) -> None:
        self.now = NOON

    def later(self, by: timedelta) -> None:
        self.now += by


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timezone, "now", lambda: clock.now)
    return clock


def resolutions() -> set[Resolution]:
    """Those of which there are rows, without parts that pages may still read."""
    opened = Following.objects.get().open_minute * 12
    rows = RollUp.objects.exclude(resolution=Resolution.PART, bucket__lt=opened)
    return {Resolution(each) for each in rows.values_list("resolution", flat=True)}


def test_ended_buckets_are_summed_from_buckets_of_the_next_shorter_resolution(clock: Clock) -> None:
    follow()
    keep(plain(ago=timedelta()))
    for wait, *expected in (
        (timedelta(), Resolution.PART),
        (2 * MINUTE, Resolution.MINUTE),
        (HOUR, Resolution.MINUTE, Resolution.HOUR),
        (DAY, Resolution.HOUR, Resolution.DAY),
    ):
        clock.later(wait)
        follow()
        assert resolutions() == set(expected)
        check()
        assert selectors.totals(frozenset({ACME}), Period.MONTH, clock.now).calls == 1


def test_a_call_that_continues_late_is_recounted_in_every_bucket_that_covers_it(
    clock: Clock,
) -> None:
    follow()
    made = Story.of(ACME, "asking", at=clock.now)
    made.expires = 10 * DAY
    keep(made.play("start; ask a"), plain(ago=timedelta()))
    for wait in (HALF_HOUR, 5 * HOUR, 2 * DAY):
        clock.later(wait)
        follow()
        check()
        written = len(made.made)
        made.at = clock.now
        keep_new(made.play("back; answer a; start; ask a"), written)
        clock.later(2 * MINUTE)
        follow()
        check()
    assert not RollUpDue.objects.exists()


def test_every_call_is_counted_after_days_without_a_follower(clock: Clock) -> None:
    follow()
    for _ in range(20):
        clock.later(5 * HOUR)
        keep(plain(ago=timedelta()))
    follow()
    check()
    assert selectors.totals(frozenset({ACME}), Period.MONTH, clock.now).calls == 20


def test_the_next_fold_counts_a_change_made_while_its_bucket_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follow()
    keep(plain())
    counted, late = counting._tally_of, [plain()]

    def tally_of(bucket: Bucket, now: datetime, *, has_parts: bool = False) -> object:
        tally = counted(bucket, now, has_parts=has_parts)
        while late:
            keep(late.pop())
            Following.objects.update(owner=None, folded_at=now)
            monkeypatch.setattr("mcphost.audit.summaries.follower.FEW", -1)  # it does not fold
            assert Follower().step().written == 1
        return tally

    monkeypatch.setattr(counting, "_tally_of", tally_of)
    follow()
    assert not late
    check()


@pytest.mark.parametrize("seed", range(5))
def test_buckets_cover_a_time_range_without_gaps_or_overlaps(seed: int, clock: Clock) -> None:
    follow()
    rng = random.Random(seed)
    keep(plain(ago=timedelta()))
    clock.later(timedelta(minutes=rng.randrange(3 * 24 * 60)))
    follow()
    for longest in (Resolution.MINUTE, Resolution.HOUR, Resolution.DAY):
        now = int(clock.now.timestamp())
        ends = now // 3600 * 3600 + 3600 * rng.randrange(-40, 3)
        begins = ends - 3600 * rng.randrange(1, 500)
        buckets = cover(begins, ends, longest, clock.now)
        assert buckets[0].begins == begins
        assert min(ends, now) <= buckets[-1].ends <= ends
        assert all(one.ends == other.begins for one, other in pairwise(buckets))
        assert max(each.resolution for each in buckets) <= longest


def test_a_call_dated_far_in_the_future_does_not_stop_the_counting_of_other_calls() -> None:
    follow()
    entries = [row(each) for each in plain().made]
    for each in entries:
        each.id = UUID(int=each.id.int | 0xFFFF << 112)  # in the year 10,889
    Entry.objects.bulk_create(entries)
    keep(plain())
    follow()
    assert not RollUpDue.objects.exists()
    assert selectors.totals(frozenset({ACME}), Period.DAY, timezone.now()).calls == 1


@pytest.mark.parametrize(
    ("opened", "ago", "expected"),
    [
        ({"open_hour": 30}, 26, Resolution.MINUTE),
        ({"open_hour": 0}, 26, Resolution.HOUR),
        ({"open_hour": 0, "open_day": 24 * 36}, 24 * 34, Resolution.HOUR),
        ({"open_hour": 0}, 24 * 34, Resolution.DAY),
    ],
)
def test_a_late_call_is_counted_in_the_buckets_from_which_its_open_hour_or_day_is_summed(
    clock: Clock, opened: dict[str, int], ago: int, expected: Resolution
) -> None:
    """`opened`: how many hours behind the process is that makes hours and days."""
    follow()
    following = Following.objects.get()
    for name, hours in opened.items():
        resolution = Resolution[name.removeprefix("open_").upper()]
        setattr(following, name, resolution.bucket(clock.now - hours * HOUR))
    counting.note([first_id(clock.now - ago * HOUR).hex], following, clock.now)
    (due,) = RollUpDue.objects.all()
    assert due.resolution == expected
