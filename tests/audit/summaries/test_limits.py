"""One transaction, one pass and one reader do a limited part of the work, and the rest is done later."""

from datetime import timedelta

import pytest
from django.utils import timezone

from mcphost.audit.models import CallSummary, Following
from mcphost.audit.summaries import follower
from mcphost.audit.summaries.follower import LEASE, Follower, catch_up
from tests.audit.asking import MINUTE, keep
from tests.audit.summaries.test_follower import check, follow, plain

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


@pytest.mark.parametrize("leased", [-MINUTE, MINUTE, None])
def test_a_reader_writes_a_few_calls_and_leaves_more_to_the_process_that_follows(
    leased: timedelta | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    follow()
    Following.objects.update(leased_until=leased and now + leased)
    monkeypatch.setattr(follower, "AT_ONCE", 2)
    keep(plain(), plain())
    catch_up(now)
    assert CallSummary.objects.count() == 2
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
    catch_up(now)
    assert CallSummary.objects.count() == 2
    check()
