"""Links that were opened: once, in one tenant's call, until their time is over."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.calls import links
from mcphost.calls.links import Link
from mcphost.feed.models import Change

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
LATER = NOW + timedelta(hours=1)


def a_link(**said: object) -> Link:
    return Link(UUID(int=1), UUID(int=2), "payment")._replace(**said)


def test_a_link_is_open_once_it_was_opened() -> None:
    assert not links.is_open(a_link())
    assert links.open_link(a_link(), LATER, NOW)
    assert links.is_open(a_link())


@pytest.mark.parametrize("other", [{"tenant": uuid4()}, {"call": uuid4()}, {"key": "other"}])
def test_no_other_link_is_opened_with_it(other: dict[str, object]) -> None:
    links.open_link(a_link(), LATER, NOW)
    assert not links.is_open(a_link(**other))


def test_opening_it_again_changes_nothing_and_tells_nobody() -> None:
    assert links.open_link(a_link(), LATER, NOW)
    assert not links.open_link(a_link(), LATER, NOW)
    assert Change.objects.filter(what="link").count() == 1
    assert Entry.objects.filter(action="link.opened").count() == 1


def test_every_process_hears_of_it_and_it_is_on_record() -> None:
    links.open_link(a_link(), LATER, NOW)
    news = Change.objects.get(what="link")
    assert (news.tenant, news.object_id) == (UUID(int=1), f"{UUID(int=2).hex} payment")
    entry = Entry.objects.get(action="link.opened")
    assert (entry.tenant, entry.target) == (UUID(int=1), "payment")
    assert entry.facts == {"call": str(UUID(int=2)), "key": "payment"}


def test_links_whose_time_is_over_are_forgotten_and_others_are_not() -> None:
    links.open_link(a_link(), NOW, NOW)
    links.open_link(a_link(key="other"), LATER, NOW)
    assert links.prune(NOW + timedelta(minutes=1)) == 1
    assert not links.is_open(a_link())
    assert links.is_open(a_link(key="other"))
    assert links.prune(NOW) == 0
