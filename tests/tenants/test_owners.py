"""Tests that a tenant always has an owner, and that no account changes its own role."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.console.users.changes import PersonFields, update
from mcphost.tenants import services
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Role
from tests.cast import ACTOR, Cast, Person
from tests.vault.parallel_threads import at_once

pytestmark = pytest.mark.django_db


def _itself(person: Person) -> Actor:
    return Actor.person(person.user.pk, person.user.get_username())


def _owners(cast: Cast) -> set[str]:
    found = services.active_owners(cast.acme.id)
    return set(found.values_list("user__username", flat=True))


def _changes() -> int:
    return Entry.objects.filter(action__startswith="member.").count()


@pytest.mark.parametrize("by_staff", [False, True])
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR, Role.MEMBER])
def test_the_last_owner_cannot_get_another_role(cast: Cast, role: Role, by_staff: bool) -> None:
    before, actor = _changes(), _itself(cast.staff) if by_staff else ACTOR
    with pytest.raises(InvalidError, match="last owner"):
        services.set_member(cast.acme.id, cast.owner.user, role, actor=actor)
    assert _owners(cast) == {"owner"}
    assert _changes() == before


def test_the_last_owner_cannot_be_removed_or_leave(cast: Cast) -> None:
    for actor in (ACTOR, _itself(cast.owner)):
        with pytest.raises(InvalidError, match="last owner"):
            services.remove_member(cast.acme.id, cast.owner.user, actor=actor)
    assert _owners(cast) == {"owner"}


def test_one_of_two_owners_can_be_demoted_or_removed_or_leave(cast: Cast) -> None:
    for name in ("operator", "auditor"):
        user = getattr(cast, name).user
        services.set_member(cast.acme.id, user, Role.OWNER, actor=_itself(cast.owner))
    services.set_member(cast.acme.id, cast.operator.user, Role.MEMBER, actor=_itself(cast.owner))
    services.remove_member(cast.acme.id, cast.owner.user, actor=_itself(cast.owner))
    assert _owners(cast) == {"auditor"}


def test_an_owner_with_an_inactive_account_does_not_count_as_owner(cast: Cast) -> None:
    services.set_member(cast.acme.id, cast.operator.user, Role.OWNER, actor=ACTOR)
    User.objects.filter(pk=cast.operator.user.pk).update(is_active=False)
    with pytest.raises(InvalidError, match="last owner"):
        services.set_member(cast.acme.id, cast.owner.user, Role.MEMBER, actor=ACTOR)
    services.remove_member(cast.acme.id, cast.operator.user, actor=ACTOR)


@pytest.mark.parametrize("name", ["owner", "operator", "auditor", "member"])
def test_users_cannot_change_their_own_role_or_add_members_without_an_invitation(
    cast: Cast, name: str
) -> None:
    services.set_member(cast.acme.id, cast.auditor.user, Role.OWNER, actor=ACTOR)
    person, memberships = getattr(cast, name), Membership.objects.filter(tenant=cast.acme.id)
    before = memberships.get(user=person.user).role
    for role in set(Role) - {Role(before)}:
        with pytest.raises(InvalidError, match="your own role"):
            services.set_member(cast.acme.id, person.user, role, actor=_itself(person))
        assert memberships.get(user=person.user).role == before
    stranger = cast.stranger.user
    with pytest.raises(InvalidError, match="accepting an invitation"):
        services.set_member(cast.acme.id, stranger, Role.MEMBER, actor=_itself(cast.owner))
    assert not memberships.filter(user=stranger).exists()


def test_staff_can_appoint_the_first_owner_and_the_appointment_is_recorded(cast: Cast) -> None:
    appointed = services.appoint_owner(cast.commons.id, "stranger", actor=_itself(cast.staff))
    assert appointed == cast.stranger.user
    membership = Membership.objects.get(tenant=cast.commons.id)
    assert (membership.role, membership.added_by) == ("owner", "staff")
    assert membership.accepted_at is None
    entry = Entry.objects.get(action="member.appointed")
    assert (entry.tenant, entry.actor_label, entry.facts) == (
        cast.commons.id,
        "staff",
        {"role": "owner", "before": None, "user": "stranger"},
    )


def test_staff_cannot_appoint_an_owner_where_there_is_one(cast: Cast) -> None:
    with pytest.raises(InvalidError, match="has an owner"):
        services.appoint_owner(cast.acme.id, "staff", actor=_itself(cast.staff))
    with pytest.raises(InvalidError, match="no active account"):
        services.appoint_owner(cast.commons.id, "nobody-of-that-name", actor=_itself(cast.staff))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["demote", "remove"])
def test_one_of_two_owners_remains_after_they_demote_or_remove_each_other_concurrently(
    cast: Cast, verb: str
) -> None:
    services.set_member(cast.acme.id, cast.operator.user, Role.OWNER, actor=ACTOR)
    pair = (cast.owner, cast.operator)
    orders = iter((pair, pair[::-1]))

    def end() -> bool:
        itself, other = next(orders)
        tenant, actor = cast.acme.id, _itself(itself)
        try:
            if verb == "remove":
                return services.remove_member(tenant, other.user, actor=actor)
            services.set_member(tenant, other.user, Role.MEMBER, actor=actor)
        except PermissionDenied:
            return False
        return True

    assert sorted(at_once(end, 2)) == [False, True]
    assert len(_owners(cast)) == 1


LOSSES: dict[str, Callable[[Person], object]] = {
    "role": lambda person: Membership.objects.filter(user=person.user).update(role="operator"),
    "membership": lambda person: Membership.objects.filter(user=person.user).delete(),
    "account": lambda person: User.objects.filter(pk=person.user.pk).update(is_active=False),
}


@pytest.mark.parametrize("lost", LOSSES)
def test_a_former_owner_cannot_change_members(cast: Cast, lost: str) -> None:
    LOSSES[lost](cast.owner)
    tenant, user, actor = cast.acme.id, cast.member.user, _itself(cast.owner)
    before = _changes()
    for change in (
        lambda: services.set_member(tenant, user, Role.OWNER, actor=actor),
        lambda: services.grant_scopes(tenant, user, ["mcp:payroll"], actor=actor),
        lambda: services.remove_member(tenant, user, actor=actor),
    ):
        with pytest.raises(PermissionDenied):
            change()
    assert _changes() == before


def test_former_staff_cannot_appoint_an_owner(cast: Cast) -> None:
    User.objects.filter(pk=cast.staff.user.pk).update(is_staff=False)
    with pytest.raises(PermissionDenied):
        services.appoint_owner(cast.commons.id, "stranger", actor=_itself(cast.staff))


@pytest.mark.django_db(transaction=True)
def test_one_owner_remains_after_concurrent_removal_and_deactivation(cast: Cast) -> None:
    services.set_member(cast.acme.id, cast.operator.user, Role.OWNER, actor=ACTOR)

    orders = iter(("remove", "switch off"))

    def end() -> bool:
        try:
            if next(orders) == "remove":
                services.remove_member(cast.acme.id, cast.owner.user, actor=ACTOR)
            else:
                user = User.objects.get(pk=cast.operator.user.pk)
                update(user, PersonFields(is_active=False), ACTOR)
        except InvalidError:
            return False
        return True

    assert sorted(at_once(end, 2)) == [False, True]
    assert len(_owners(cast)) == 1


def test_tool_scopes_can_be_granted_and_revoked_and_are_recorded(cast: Cast) -> None:
    user, actor = cast.member.user, _itself(cast.owner)
    services.grant_scopes(cast.acme.id, user, ["mcp:payroll", "mcp:list"], actor=actor)
    services.grant_scopes(cast.acme.id, user, ["mcp:payroll"], actor=actor)
    entry = Entry.objects.get(action="member.scopes_set")
    assert entry.facts == {"scopes": ["mcp:payroll"], "before": [], "user": "member"}
    assert Membership.objects.get(user=user).scopes == ["mcp:payroll"]
    with pytest.raises(InvalidError, match="not a scope of a tool"):
        services.grant_scopes(cast.acme.id, user, ["api:write", "*"], actor=actor)
    with pytest.raises(InvalidError, match="at most 200"):
        wanted = [f"mcp:t{number}" for number in range(201)]
        services.grant_scopes(cast.acme.id, user, wanted, actor=actor)
    with pytest.raises(InvalidError, match="not a member"):
        services.grant_scopes(cast.acme.id, cast.stranger.user, [], actor=actor)
