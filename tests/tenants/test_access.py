"""Tests of every pair of person and permission; the stranger has none."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied

from mcphost.tenants import access
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import (
    READING,
    ROLE_PERMISSIONS,
    STAFF_PERMISSIONS,
    Permission,
    Role,
)
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.tenants.services import close_tenant, set_member
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db

PEOPLE = {
    "owner": ROLE_PERMISSIONS[Role.OWNER],
    "operator": ROLE_PERMISSIONS[Role.OPERATOR],
    "auditor": ROLE_PERMISSIONS[Role.AUDITOR],
    "member": ROLE_PERMISSIONS[Role.MEMBER],
    "staff": STAFF_PERMISSIONS,
    "stranger": frozenset[Permission](),
}


def _user(cast: Cast, name: str) -> User:
    user: User = getattr(cast, name).user
    return user


def _ids(user: User | AnonymousUser, permission: Permission) -> set[object]:
    return {tenant.pk for tenant in access.tenants_where(user, permission)}


@pytest.mark.parametrize("name", PEOPLE)
def test_a_user_has_exactly_the_permissions_of_their_role_while_active(
    cast: Cast, name: str, django_assert_num_queries: object
) -> None:
    user = _user(cast, name)
    assert {p for p in Permission if access.allowed(user, cast.acme, p)} == PEOPLE[name]
    of_platform = STAFF_PERMISSIONS if name == "staff" else frozenset()
    assert {p for p in Permission if access.allowed(user, None, p)} == of_platform
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert access.permissions(user, cast.acme) == PEOPLE[name]
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert access.permissions(user, None) == of_platform
    user.is_active = False
    assert not any(access.allowed(user, cast.acme, permission) for permission in Permission)
    assert not any(_ids(user, permission) for permission in Permission)


@pytest.mark.parametrize("name", PEOPLE)
def test_the_list_of_tenants_agrees_with_the_permission_check_for_each(
    cast: Cast, name: str
) -> None:
    user = _user(cast, name)
    close_tenant(cast.commons.id, actor=ACTOR)
    for permission in Permission:
        listed = _ids(user, permission)
        for tenant in Tenant.objects.all():
            assert (tenant.pk in listed) is access.allowed(user, tenant, permission)


@pytest.mark.parametrize("permission", Permission)
def test_the_holders_of_a_permission_agree_with_the_check_for_each(
    cast: Cast, permission: Permission
) -> None:
    users = [_user(cast, name) for name in PEOPLE]
    for role, user in zip(Role, users, strict=False):
        set_member(cast.commons.id, user, role, actor=ACTOR)
    close_tenant(cast.commons.id, actor=ACTOR)
    users += [
        User.objects.create(username="former-staff", is_staff=True, is_active=False),
        User.objects.create(username="former-owner", is_active=False),
    ]
    Membership.objects.create(tenant_id=cast.acme.id, user=users[-1], role=Role.OWNER)
    ids = [cast.acme.id, cast.commons.id]
    assert access.holders(permission, users, ids) == {
        (user.pk, None if tenant is None else tenant.pk)
        for user in users
        for tenant in (None, *Tenant.objects.filter(pk__in=ids))
        if access.allowed(user, tenant, permission)
    }


def test_require_passes_silently_or_denies_without_a_reason(cast: Cast) -> None:
    access.require(cast.owner.user, cast.acme, Permission.EDIT_TOOLS)
    found = access.tenant_for(cast.operator.user, "acme", Permission.EDIT_TOOLS)
    assert found.pk == cast.acme.id
    with pytest.raises(PermissionDenied) as denied:
        access.require(cast.stranger.user, cast.acme, Permission.VIEW_TOOLS)
    assert str(denied.value) == ""


def test_staff_appointed_auditor_of_a_tenant_can_view_its_payloads(cast: Cast) -> None:
    set_member(cast.acme.id, cast.staff.user, Role.AUDITOR, actor=ACTOR)
    assert access.allowed(cast.staff.user, cast.acme, Permission.VIEW_PAYLOADS)
    assert not access.allowed(cast.staff.user, cast.globex, Permission.VIEW_PAYLOADS)
    assert _ids(cast.staff.user, Permission.VIEW_PAYLOADS) == {cast.acme.id}


def test_staff_see_all_tenants_and_other_users_their_own(cast: Cast) -> None:
    def slugs(user: User) -> set[str]:
        return {tenant.slug for tenant in access.visible_tenants(user)}

    assert slugs(cast.staff.user) == {"acme", "globex", "commons"}
    assert slugs(cast.owner.user) == slugs(cast.auditor.user) == {"acme"}
    assert slugs(cast.stranger.user) == {"globex"}
    assert slugs(cast.member.user) == set()


def test_a_deactivated_user_is_not_an_active_member(cast: Cast) -> None:
    user = cast.member.user
    assert access.is_active_member(user.pk, cast.acme.id)
    assert not access.is_active_member(user.pk, cast.globex.id)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert not access.is_active_member(user.pk, cast.acme.id)


def test_a_closed_tenant_has_no_active_members(cast: Cast) -> None:
    close_tenant(cast.acme.id, actor=ACTOR)
    assert not access.is_active_member(cast.member.user.pk, cast.acme.id)


def test_anonymous_and_unsaved_users_have_no_permissions(cast: Cast) -> None:
    nobody, unsaved = AnonymousUser(), User(username="new", is_staff=True)
    for permission in Permission:
        assert not access.allowed(nobody, cast.commons, permission)
        assert not access.allowed(nobody, None, permission)
        assert not _ids(nobody, permission)
    assert not access.allowed(unsaved, cast.acme, Permission.VIEW_TOOLS)
    assert not access.visible_tenants(unsaved).exists()


@pytest.mark.parametrize("name", ["owner", "auditor", "staff"])
def test_a_closed_tenant_can_be_read_and_not_changed(cast: Cast, name: str) -> None:
    closed: TenantSnapshot = close_tenant(cast.acme.id, actor=ACTOR)
    user = _user(cast, name)
    assert {p for p in Permission if access.allowed(user, closed, p)} == PEOPLE[name] & READING


@pytest.mark.parametrize("slug", ["acme", "commons", "nowhere", ""])
def test_foreign_and_unknown_tenants_are_denied_with_the_same_error_and_query_count(
    cast: Cast, slug: str, django_assert_num_queries: object
) -> None:
    with django_assert_num_queries(1), pytest.raises(PermissionDenied) as denied:  # type: ignore[operator]
        access.tenant_for(cast.stranger.user, slug, Permission.VIEW_TOOLS)
    assert str(denied.value) == ""
