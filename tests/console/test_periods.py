"""The period of a page of numbers: one of the usual ones, or from one time to another, as far as figures are kept."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from mcphost.audit.summaries.figures import OwnPeriod, Period
from mcphost.audit.summaries.rollups import Bucket, Resolution, is_kept, kept_span
from mcphost.console.periods import AskedPeriod, asked_period
from tests.audit.recorded_calls import follow
from tests.cast import Cast
from tests.console.dashboards.rows import calls

NOW = datetime(2026, 7, 28, 14, 30, 20, tzinfo=UTC)
DAY = timedelta(days=1)


def asked(**fields: str) -> AskedPeriod:
    return asked_period(QueryDict(urlencode(fields)))


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M")


@pytest.mark.parametrize(
    "ago", [timedelta(minutes=3), timedelta(hours=20), 2 * DAY, 31 * DAY, 40 * DAY, 390 * DAY]
)
@pytest.mark.parametrize("length", [timedelta(minutes=1), timedelta(hours=5), 3 * DAY])
def test_a_period_is_widened_to_the_shortest_time_of_which_figures_are_kept(
    ago: timedelta, length: timedelta
) -> None:
    begins, ends = kept_span(NOW - ago, NOW - ago + length, NOW)
    assert begins <= NOW - ago < ends
    for at, is_end in ((begins, False), (ends, True)):
        second = int(at.timestamp()) - is_end
        kept = [
            resolution
            for resolution in (Resolution.MINUTE, Resolution.HOUR, Resolution.DAY)
            if is_kept(Bucket(resolution, second // resolution.seconds), NOW)
        ]
        assert kept
        assert int(at.timestamp()) % kept[0].seconds == 0
        assert (
            abs(at - (NOW - ago + length * is_end)) <= timedelta(seconds=max(kept[0].seconds, 60))
            or ends > NOW
        )


def test_what_is_no_longer_kept_is_left_out_of_a_period() -> None:
    begins, ends = kept_span(NOW - 1000 * DAY, NOW + 1000 * DAY, NOW)
    assert NOW - 400 * DAY < begins < NOW - 398 * DAY
    assert ends == NOW.replace(second=0) + timedelta(minutes=1)
    begins, ends = kept_span(NOW - 1000 * DAY, NOW - 900 * DAY, NOW)
    assert ends - begins == DAY


@pytest.mark.parametrize(
    "length", [timedelta(minutes=1), timedelta(hours=3), 2 * DAY, 30 * DAY, 399 * DAY]
)
def test_the_points_of_a_period_cover_it_once(length: timedelta) -> None:
    period = OwnPeriod(NOW, NOW + length)
    assert 1 <= period.points <= 62
    assert (period.points - 1) * period.step < length <= period.points * period.step


def test_an_own_period_is_read_in_its_zone_and_says_so() -> None:
    since = timezone.now().replace(second=0) - timedelta(hours=3)
    choice = asked(since=text(since + timedelta(hours=5, minutes=30)), zone="Asia/Kolkata")
    assert isinstance(choice.period, OwnPeriod)
    assert text(choice.period.begins) == text(since)
    assert choice.includes_now
    assert choice.words.endswith(" Asia/Kolkata")
    assert (choice.problems, choice.note) == ([], "")
    assert not any(link.current for link in choice.links)
    assert all("since" not in link.url for link in choice.links)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"since": "yesterday"}, "is no date"),
        ({"until": "2026-07-28"}, "Say from when"),
        ({"since": "2026-07-28", "until": "2026-07-27"}, "before it begins"),
        ({"since": "2099-07-28"}, "begins in the past"),
        ({"since": "2026-07-28", "zone": "Mars/Base"}, "There is no time zone"),
        ({"period": "9y"}, "There is no period"),
    ],
)
def test_a_period_that_cannot_be_shown_is_named_with_the_reason(
    fields: dict[str, str], problem: str
) -> None:
    choice = asked(**fields)
    assert problem in " ".join(choice.problems)
    assert choice.period is Period.DAY


def test_a_note_says_when_only_a_longer_time_is_kept() -> None:
    since = timezone.now() - 40 * DAY
    choice = asked(since=text(since), until=text(since + timedelta(hours=1)))
    assert "hours for a month" in choice.note
    assert not choice.includes_now


@pytest.mark.django_db
def test_figures_say_when_they_were_read_and_follow_only_a_period_that_includes_now(
    owner: Client, cast: Cast
) -> None:
    calls(cast.acme.id, 1)
    follow()
    now = timezone.now()
    past = urlencode({"since": text(now - 2 * DAY), "until": text(now - DAY)})
    for path in ("/admin/", "/admin/t/acme/", "/admin/t/acme/input-requests/funnel/"):
        live, still = (owner.get(f"{path}?{query}").content.decode() for query in ("", past))
        for page in (live, still):
            assert "data-clock" in page
        assert 'data-live="15"' in live
        assert "data-live-toggle" in live
        assert "data-live" not in still
