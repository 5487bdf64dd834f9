import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcphost.tenants.models import Membership
from tests.cast import Cast

MEMBERS = "/admin/t/acme/members/"

pytestmark = pytest.mark.django_db


def role_of(name: str) -> str | None:
    found = Membership.objects.filter(tenant__slug="acme", user__username=name)
    return found.values_list("role", flat=True).first()


def test_an_owner_gives_somebody_a_role(owner: Client) -> None:
    User.objects.create_user("newcomer")
    response = owner.post(MEMBERS, {"username": "newcomer", "role": "auditor"})
    assert response["Location"] == MEMBERS
    assert role_of("newcomer") == "auditor"
    assert "newcomer is auditor now." in owner.get(MEMBERS).content.decode()


@pytest.mark.parametrize(("name", "role"), [("nobody", "owner"), ("stranger", "emperor")])
def test_unknown_people_and_roles_are_refused_beside_the_field(
    owner: Client, name: str, role: str
) -> None:
    response = owner.post(MEMBERS, {"username": name, "role": role})
    assert len(response.context["form"].errors) == 1
    assert role_of(name) is None


def test_a_role_is_changed(owner: Client, cast: Cast) -> None:
    path = f"{MEMBERS}{cast.member.user.pk}/role/"
    owner.post(path, {"role": "operator"})
    assert role_of("member") == "operator"
    owner.post(path, {"role": "emperor"})
    assert role_of("member") == "operator"
    assert "There is no such role." in owner.get(MEMBERS).content.decode()


def test_a_member_is_removed_once_that_is_confirmed(owner: Client, cast: Cast) -> None:
    path = f"{MEMBERS}{cast.member.user.pk}/remove/"
    assert "stop working for good" in owner.get(path).content.decode()
    assert role_of("member") == "member"
    owner.post(path)
    assert role_of("member") is None


def test_people_of_other_tenants_are_unknown_here(owner: Client, cast: Cast) -> None:
    stranger = cast.stranger.user.pk
    assert owner.post(f"{MEMBERS}{stranger}/role/", {"role": "owner"}).status_code == 404
    assert owner.get(f"{MEMBERS}{stranger}/remove/").status_code == 404


def test_a_tenant_without_members_asks_for_its_first_owner(staff: Client, cast: Cast) -> None:
    page = staff.get("/admin/t/commons/members/").content.decode()
    assert "Add the first owner" in page
    assert "Nobody has a role here" in staff.get("/admin/t/commons/tokens/new/").content.decode()
