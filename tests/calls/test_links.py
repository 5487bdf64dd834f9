"""Links are confirmed once, in a call of one tenant, and are deleted after they expire."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.calls import links
from mcphost.calls.links import Link
from mcphost.feed.models import Change

pytestmark = pytest.mark.django_db(transaction=True)
NOW = timezone.now()
LATER = NOW + timedelta(hours=1)
ADA = Actor.person(7, "ada")


def a_link(**said: object) -> Link:
    return Link(UUID(int=1), UUID(int=2), "payment")._replace(**said)


def test_a_link_is_confirmed_once_for_all_processes_and_recorded() -> None:
    assert not links.is_open(a_link())
    assert links.confirm(a_link(), ADA, LATER, NOW)
    assert links.is_open(a_link())
    for other in ({"tenant": uuid4()}, {"call": uuid4()}, {"key": "other"}):
        assert not links.is_open(a_link(**other))
    assert not links.confirm(a_link(), ADA, LATER, NOW)
    news = Change.objects.get(name="link")
    assert (news.tenant, news.object_id) == (UUID(int=1), f"{UUID(int=2).hex} payment")
    entry = Entry.objects.get(action="link.confirmed")
    assert (entry.tenant, entry.target) == (UUID(int=1), "payment")
    assert (entry.actor_kind, entry.actor_id, entry.actor_label) == ("person", "7", "ada")
    facts = {"call": str(UUID(int=2)), "key": "payment", "evidence": "signed-in"}
    assert entry.facts == facts


def test_a_callback_is_recorded_as_anonymous_with_its_source_address() -> None:
    assert links.call_back(a_link(), "192.0.2.7", LATER, NOW)
    assert not links.call_back(a_link(), "192.0.2.8", LATER, NOW)
    assert links.is_open(a_link())
    entry = Entry.objects.get(action="callback.received")
    assert (entry.actor_kind, entry.actor_id, entry.target) == ("anonymous", "", "payment")
    facts = {"call": str(UUID(int=2)), "key": "payment", "source": "192.0.2.7"}
    assert entry.facts == facts


def test_only_expired_links_are_pruned() -> None:
    links.confirm(a_link(), ADA, NOW, NOW)
    links.confirm(a_link(key="other"), ADA, LATER, NOW)
    assert links.prune(NOW + timedelta(minutes=1)) == 1
    assert not links.is_open(a_link())
    assert links.is_open(a_link(key="other"))
    assert links.prune(NOW) == 0
