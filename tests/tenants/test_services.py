"""Tests that each verb is one transaction, one entry, one change in the change log; or nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError

from mcphost.audit.models import Entry
from mcphost.feed.models import Change
from mcphost.tenants import services
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Role
from mcphost.tenants.signals import tenant_created
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db


@contextmanager
def told(*actions: str, news: tuple[tuple[str, str], ...] = ()) -> Iterator[list[Entry]]:
    """Check that the block writes exactly these entries and changes; yield a list of entries."""
    old_entries = set(Entry.objects.values_list("pk", flat=True))
    last = Change.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
    made: list[Entry] = []
    yield made
    made += [entry for entry in Entry.objects.all() if entry.pk not in old_entries]
    assert sorted(entry.action for entry in made) == sorted(actions)
    changes = Change.objects.filter(seq__gt=last).order_by("seq")
    assert tuple((change.what, change.object_id) for change in changes) == news


def _role(tenant: UUID, user: User) -> str | None:
    found = Membership.objects.filter(tenant_id=tenant, user=user)
    return found.values_list("role", flat=True).first()


def test_a_tenant_is_created_with_its_record_and_its_news() -> None:
    fields = TenantFields(title=" Initech ", allowed_origins=("https://Initech.example:443",))
    with told("tenant.created", news=(("tenant", "initech"),)) as entries:
        made = services.create_tenant("initech", fields, actor=ACTOR)
    assert made.title == "Initech"
    assert made.allowed_origins == ("https://initech.example",)
    assert (entries[0].tenant, entries[0].target) == (made.id, "initech")
    assert entries[0].facts["allowed_origins"] == ["https://initech.example"]
    assert "instructions" not in entries[0].facts


def test_a_tenant_without_a_title_is_called_by_its_slug() -> None:
    assert services.create_tenant("initech", actor=ACTOR).title == "initech"


@pytest.mark.parametrize("slug", ["acme", "gone"])
def test_a_slug_that_is_or_was_somebodys_is_refused_and_nothing_is_told(
    cast: Cast, slug: str
) -> None:
    gone = services.create_tenant("gone", actor=ACTOR)
    services.close_tenant(gone.id, actor=ACTOR)
    with told(), pytest.raises(InvalidError) as refused:
        services.create_tenant(slug, actor=ACTOR)
    assert refused.value.problems == {"slug": ["This slug is taken."]}


def test_a_bad_slug_and_bad_fields_are_refused() -> None:
    with told(), pytest.raises(InvalidError, match="slug"):
        services.create_tenant("No Slug", actor=ACTOR)
    with told(), pytest.raises(InvalidError, match="icon"):
        services.create_tenant("initech", TenantFields(icon="x"), actor=ACTOR)
    assert not Tenant.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_others_hear_of_a_new_tenant_after_its_commit() -> None:
    heard: list[UUID] = []

    def listener(tenant_id: UUID, **_: object) -> None:
        assert Tenant.objects.filter(pk=tenant_id).exists()
        heard.append(tenant_id)

    tenant_created.connect(listener)
    try:
        made = services.create_tenant("initech", actor=ACTOR)
    finally:
        tenant_created.disconnect(listener)
    assert heard == [made.id]


def test_an_edit_is_recorded_by_what_it_changed(cast: Cast) -> None:
    fields = replace(cast.acme.fields, public=True, instructions="Be kind.")
    with told("tenant.updated", news=(("tenant", "acme"),)) as entries:
        changed = services.update_tenant(cast.acme.id, fields, actor=ACTOR)
    assert changed.fields == fields
    assert entries[0].facts == {"changed": ["instructions", "public"], "public": True}


def test_switching_something_off_is_recorded_as_well(cast: Cast) -> None:
    with told("tenant.updated", news=(("tenant", "commons"),)) as entries:
        services.update_tenant(
            cast.commons.id, replace(cast.commons.fields, public=False), actor=ACTOR
        )
    assert entries[0].facts == {"changed": ["public"], "public": False}


def test_an_edit_without_a_difference_changes_and_tells_nothing(cast: Cast) -> None:
    with told():
        services.update_tenant(cast.acme.id, cast.acme.fields, actor=ACTOR)


def test_a_bad_edit_is_refused_and_changes_nothing(cast: Cast) -> None:
    with told(), pytest.raises(InvalidError, match="title"):
        services.update_tenant(cast.acme.id, TenantFields(public=True), actor=ACTOR)
    assert not Tenant.objects.get(pk=cast.acme.id).public


def test_a_tenant_is_closed_once_and_for_good(cast: Cast) -> None:
    with told("tenant.closed", news=(("tenant", "acme"),)):
        closed = services.close_tenant(cast.acme.id, actor=ACTOR)
    assert not closed.open
    with told(), pytest.raises(UnknownTenantError):
        services.close_tenant(cast.acme.id, actor=ACTOR)


@pytest.mark.parametrize("state", ["unknown", "closed"])
def test_unknown_and_closed_tenants_refuse_changes_in_the_same_words(
    cast: Cast, state: str
) -> None:
    services.close_tenant(cast.acme.id, actor=ACTOR)
    tenant = cast.acme.id if state == "closed" else uuid4()
    with told():
        with pytest.raises(UnknownTenantError, match="no open tenant"):
            services.update_tenant(tenant, cast.acme.fields, actor=ACTOR)
        with pytest.raises(UnknownTenantError, match="no open tenant"):
            services.set_member(tenant, cast.staff.user, Role.MEMBER, actor=ACTOR)


def test_a_person_becomes_a_member_and_changes_role(cast: Cast) -> None:
    user = cast.staff.user
    news = (("member", str(user.pk)),)
    with told("member.set", news=news) as entries:
        services.set_member(cast.acme.id, user, Role.MEMBER, actor=ACTOR)
    assert entries[0].facts == {"role": "member", "before": None, "user": "staff"}
    with told("member.set", news=news) as entries:
        services.set_member(cast.acme.id, user, Role.OWNER, actor=ACTOR)
    assert entries[0].facts == {"role": "owner", "before": "member", "user": "staff"}
    assert _role(cast.acme.id, user) == "owner"


def test_the_same_role_again_tells_nothing(cast: Cast) -> None:
    with told():
        services.set_member(cast.acme.id, cast.member.user, Role.MEMBER, actor=ACTOR)


def test_a_member_is_removed_once(cast: Cast) -> None:
    user = cast.member.user
    with told("member.removed", news=(("member", str(user.pk)),)) as entries:
        assert services.remove_member(cast.acme.id, user, actor=ACTOR)
    assert entries[0].facts == {"before": "member", "user": "member"}
    with told():
        assert not services.remove_member(cast.acme.id, user, actor=ACTOR)


def test_members_of_a_closed_tenant_can_still_be_removed(cast: Cast) -> None:
    services.close_tenant(cast.acme.id, actor=ACTOR)
    assert services.remove_member(cast.acme.id, cast.member.user, actor=ACTOR)


def test_a_change_whose_news_cannot_be_written_is_not_made(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> int:
        raise DatabaseError("disk full")

    monkeypatch.setattr(services, "announce", broken)
    with told(), pytest.raises(DatabaseError):
        services.set_member(cast.acme.id, cast.staff.user, Role.OWNER, actor=ACTOR)
    assert _role(cast.acme.id, cast.staff.user) is None


def test_switching_a_person_off_is_news_and_logging_in_is_not(cast: Cast) -> None:
    user = cast.member.user
    user.is_active = False
    with told(news=(("member", str(user.pk)),)):
        user.save()
    with told(news=(("member", str(user.pk)),)):
        user.save(update_fields=["is_active"])
    with told():
        user.save(update_fields=["last_login"])


def test_deleting_a_person_is_news_and_making_one_is_not(cast: Cast) -> None:
    user_id = cast.member.user.pk
    with told(news=(("member", str(user_id)),)):
        cast.member.user.delete()
    with told():
        User.objects.create_user("newcomer")
