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
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Role
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
    assert tuple((change.name, change.object_id) for change in changes) == news


def _role(tenant: UUID, user: User) -> str | None:
    found = Membership.objects.filter(tenant_id=tenant, user=user)
    return found.values_list("role", flat=True).first()


def test_creating_a_tenant_writes_a_record_and_a_change_log_entry() -> None:
    fields = TenantFields(title=" Initech ", allowed_origins=("https://Initech.example:443",))
    with told("tenant.created", news=(("tenant", "initech"),)) as entries:
        made = services.create_tenant("initech", fields, actor=ACTOR)
    assert made.title == "Initech"
    assert made.allowed_origins == ("https://initech.example",)
    assert (entries[0].tenant, entries[0].target) == (made.id, "initech")
    assert entries[0].facts["allowed_origins"] == ["https://initech.example"]
    assert "instructions" not in entries[0].facts
    assert services.create_tenant("hooli", actor=ACTOR).title == "hooli"


@pytest.mark.parametrize("slug", ["acme", "gone"])
def test_a_slug_in_use_or_formerly_in_use_is_refused_and_nothing_is_recorded(
    cast: Cast, slug: str
) -> None:
    gone = services.create_tenant("gone", actor=ACTOR)
    services.close_tenant(gone.id, actor=ACTOR)
    with told(), pytest.raises(InvalidError) as refused:
        services.create_tenant(slug, actor=ACTOR)
    assert refused.value.problems == {"slug": ["This slug is taken."]}


def test_an_update_is_recorded_with_the_changed_fields(cast: Cast) -> None:
    before = cast.acme.fields
    fields = replace(before, public=True, instructions="Be kind.")
    with told("tenant.updated", news=(("tenant", "acme"),)) as entries:
        changed = services.update_tenant(cast.acme.id, fields, actor=ACTOR)
    assert changed.fields == fields
    assert entries[0].facts == {"changed": ["instructions", "public"], "public": True}
    with told():
        services.update_tenant(cast.acme.id, fields, actor=ACTOR)
    private = replace(fields, public=False)
    with told("tenant.updated", news=(("tenant", "acme"),)) as entries:
        services.update_tenant(cast.acme.id, private, actor=ACTOR)
    assert entries[0].facts == {"changed": ["public"], "public": False}


@pytest.mark.parametrize("state", ["unknown", "closed"])
def test_unknown_and_closed_tenants_refuse_changes_with_the_same_error(
    cast: Cast, state: str
) -> None:
    with told("tenant.closed", news=(("tenant", "acme"),)):
        assert not services.close_tenant(cast.acme.id, actor=ACTOR).open
    tenant = cast.acme.id if state == "closed" else uuid4()
    with told():
        for change in (
            lambda: services.close_tenant(tenant, actor=ACTOR),
            lambda: services.update_tenant(tenant, cast.acme.fields, actor=ACTOR),
            lambda: services.set_member(tenant, cast.staff.user, Role.MEMBER, actor=ACTOR),
        ):
            with pytest.raises(UnknownTenantError, match="no open tenant"):
                change()
    assert services.remove_member(cast.acme.id, cast.member.user, actor=ACTOR)


def test_a_member_is_added_changed_and_removed_once(cast: Cast) -> None:
    user = cast.staff.user
    news = (("member", str(user.pk)),)
    for role, before in ((Role.MEMBER, None), (Role.OPERATOR, "member")):
        with told("member.set", news=news) as entries:
            services.set_member(cast.acme.id, user, role, actor=ACTOR)
        assert entries[0].facts == {"role": str(role), "before": before, "user": "staff"}
        assert _role(cast.acme.id, user) == role
        with told():
            services.set_member(cast.acme.id, user, role, actor=ACTOR)
    with told("member.removed", news=news) as entries:
        assert services.remove_member(cast.acme.id, user, actor=ACTOR)
    assert entries[0].facts == {"before": "operator", "user": "staff"}
    with told():
        assert not services.remove_member(cast.acme.id, user, actor=ACTOR)


def test_a_change_that_cannot_be_written_to_the_change_log_is_rolled_back(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> int:
        raise DatabaseError("disk full")

    monkeypatch.setattr(services, "announce", broken)
    with told(), pytest.raises(DatabaseError):
        services.set_member(cast.acme.id, cast.staff.user, Role.OWNER, actor=ACTOR)
    assert _role(cast.acme.id, cast.staff.user) is None


def test_deactivating_or_deleting_a_user_is_announced_but_not_login_or_creation(
    cast: Cast,
) -> None:
    user = cast.member.user
    news = (("member", str(user.pk)),)
    user.is_active = False
    with told(news=news):
        user.save()
    with told(news=news):
        user.save(update_fields=["is_active"])
    with told():
        user.save(update_fields=["last_login"])
    with told(news=news):
        user.delete()
    with told():
        User.objects.create_user("newcomer")
