import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.catalogue import services as catalogue
from mcphost.tenants import invitations, services
from mcphost.tenants.models import Invitation, Membership
from mcphost.tenants.roles import Role
from tests.cast import Cast
from tests.console.tenant_data import ACTOR, Things, tool_fields

MEMBERS = "/admin/t/acme/members/"

pytestmark = pytest.mark.django_db


def role_of(name: str, slug: str = "acme") -> str | None:
    found = Membership.objects.filter(tenant__slug=slug, user__username=name)
    return found.values_list("role", flat=True).first()


def test_an_owner_invites_an_account_and_sees_the_link_once(owner: Client) -> None:
    User.objects.create_user("newcomer")
    fields = {"username": "newcomer", "role": "auditor", "days": "7"}
    page = owner.post(MEMBERS, fields).content.decode()
    assert role_of("newcomer") is None
    (link,) = set(
        re.findall(r"http://testserver/admin/invitations/(mcph_invitation_[\w-]{43})/", page)
    )
    listed = owner.get(MEMBERS).content.decode()
    assert "newcomer" in listed
    assert link not in listed
    assert link not in owner.get("/admin/t/acme/audit-log/").content.decode()


@pytest.mark.parametrize("name", ["existing", "unknown", "inactive"])
def test_an_owner_cannot_tell_whether_an_account_exists(owner: Client, name: str) -> None:
    """The pages differ only in the name, the links and the times."""
    User.objects.create_user("existing")
    User.objects.create_user("inactive", is_active=False)

    def pages(typed: str) -> list[str]:
        made = owner.post(MEMBERS, {"username": typed, "role": "member", "days": "7"})
        listed = owner.get(MEMBERS)
        Invitation.objects.all().delete()
        secret = r'mcph_invitation_[\w-]{43}|[0-9a-f-]{36}|value="\w{64}"|datetime="[^"]+"|title="[^"]+UTC"'
        return [
            re.sub(secret, "…", page.content.decode()).replace(typed, "…")
            for page in (made, listed)
        ]

    assert pages(name) == pages("somethingelse")


def test_an_invitation_is_withdrawn_once(owner: Client, cast: Cast) -> None:
    made = invitations.invite(
        cast.acme.id,
        "newcomer",
        Role.OWNER,
        actor=Actor.person(cast.owner.user.pk, cast.owner.user.get_username()),
    )
    path = f"{MEMBERS}invitations/{made.id}/withdraw/"
    asked = owner.get(path).content.decode()
    assert "Withdraw the invitation of “newcomer”" in asked
    assert "cannot be made to work again" in asked
    assert not Entry.objects.filter(action="invitation.withdrawn").exists()
    for said in ("The invitation was withdrawn.", "There is no such open invitation."):
        assert said in owner.post(path, follow=True).content.decode()
    assert owner.get(path)["Location"] == f"{MEMBERS}#{made.id}"
    assert owner.post(f"{MEMBERS}invitations/{uuid4()}/withdraw/").status_code == 404
    assert Entry.objects.filter(action="invitation.withdrawn").count() == 1


def test_changing_the_own_role_or_the_last_owner_is_refused_with_a_message(owner, staff, cast):
    path = f"{MEMBERS}{cast.owner.user.pk}/"
    for client, verb, said in (
        (owner, "role", "You cannot change your own role."),
        (staff, "role", "This is the last owner of the tenant."),
        (owner, "remove", "This is the last owner of the tenant."),
        (staff, "remove", "This is the last owner of the tenant."),
    ):
        response = client.post(f"{path}{verb}/", {"role": "member"}, follow=True)
        assert said in response.content.decode()
        assert role_of("owner") == "owner"
    invited = owner.post(MEMBERS, {"username": "owner", "role": "member", "days": "7"})
    assert "does not change" in invited.context["form"].errors["username"][0]


def test_a_role_is_changed_and_a_member_is_removed_after_confirmation(owner: Client, cast: Cast):
    path = f"{MEMBERS}{cast.member.user.pk}/"
    for role in ("operator", "emperor"):
        owner.post(f"{path}role/", {"role": role})
        assert role_of("member") == "operator"
    assert "There is no such role." in owner.get(MEMBERS).content.decode()
    page = owner.get(f"{path}remove/").content.decode()
    assert "member will lose the role of operator in Acme." in page
    assert "1 live token will stop working permanently, even if member returns." in page
    tokens = '<a href="/admin/t/acme/tokens/">their tokens</a>'
    assert f"<li>Service accounts will keep {tokens}, including those" in page
    assert "This cannot be undone." not in page
    assert role_of("member") == "operator"
    owner.post(f"{path}remove/")
    assert role_of("member") is None


def test_a_member_becomes_an_owner_after_confirmation(owner: Client, cast: Cast) -> None:
    path = f"{MEMBERS}{cast.member.user.pk}/role/"
    asked = owner.post(path, {"role": "owner"})
    assert asked.context["title"] == "Make “member” an owner"
    assert "to take the role of owner from others" in asked.content.decode()
    assert role_of("member") == "member"
    assert owner.post(path, dict(asked.context["repeated"])).status_code == 302
    assert role_of("member") == "owner"
    assert owner.post(path, {"role": "owner"}).status_code == 302, "there is nothing to ask"


def test_staff_appoint_the_first_owner_of_a_tenant(staff: Client, cast: Cast) -> None:
    path = "/admin/t/commons/members/"
    assert "Appoint the first owner" in staff.get(path).content.decode()
    assert "service account first" in staff.get("/admin/t/commons/tokens/new/").content.decode()
    refused = staff.post(path, {"username": "nobody-of-that-name"})
    assert "no active account" in refused.context["form"].errors["username"][0]
    assert staff.post(path, {"username": "stranger"})["Location"] == path
    assert role_of("stranger", "commons") == "owner"
    page = staff.get(path).content.decode()
    assert "added by staff, without an invitation" in page
    assert "Invite a user" in page


@pytest.fixture
def scopes(acme: Things, cast: Cast) -> str:
    """The page of a member's scopes, who has both scopes that tools require."""
    for name in ("payroll", "paint"):
        catalogue.create(acme.tenant, tool_fields(name, scopes=(f"mcp:{name}",)), ACTOR)
    _grant(cast, "mcp:paint", "mcp:payroll")
    return f"{MEMBERS}{cast.member.user.pk}/scopes/"


def _grant(cast: Cast, *scopes: str) -> None:
    services.grant_scopes(cast.acme.id, cast.member.user, scopes, actor=ACTOR)


def _granted(cast: Cast) -> list[str]:
    scopes: list[str] = Membership.objects.get(tenant=cast.acme.id, user=cast.member.user).scopes
    return scopes


def test_a_scope_revoked_in_the_meantime_is_not_granted_again(owner, cast, scopes):
    page = owner.get(scopes)
    based_on = page.context["based_on"]
    assert f'name="based_on" value="{based_on}"' in page.content.decode()
    _grant(cast, "mcp:paint")
    before = Entry.objects.count()
    both = {"scopes": ["mcp:paint", "mcp:payroll"], "based_on": based_on}
    refused = owner.post(scopes, both)
    assert "member was changed meanwhile by another user" in refused.content.decode()
    assert 'id="conflict"' in refused.content.decode()
    (conflict,) = refused.context["conflict"]
    assert (conflict.before, conflict.after) == (["mcp:paint"], ["mcp:paint", "mcp:payroll"])
    assert _granted(cast) == ["mcp:paint"]
    assert Entry.objects.count() == before
    owner.post(scopes, {**both, "based_on": refused.context["based_on"]})
    assert _granted(cast) == ["mcp:paint", "mcp:payroll"]


def test_the_scopes_of_a_user_who_sets_those_of_tools_are_no_choice(owner, cast, scopes):
    page = owner.get(f"{MEMBERS}{cast.operator.user.pk}/scopes/").content.decode()
    assert "operator can use every tool" in page
    assert 'name="scopes"' not in page
    owner.post(f"{MEMBERS}{cast.operator.user.pk}/scopes/", {"scopes": ["mcp:paint"]})
    assert Membership.objects.get(tenant=cast.acme.id, user=cast.operator.user).scopes == []


def test_scopes_that_a_user_chose_with_a_lower_role_are_named(owner, cast, scopes):
    _grant(cast, "mcp:paint")
    services.set_member(cast.acme.id, cast.member.user, Role.OPERATOR, actor=ACTOR)
    page = owner.get(scopes).content.decode()
    assert "would have those chosen before: <code>mcp:paint</code>." in page


def test_a_lower_role_shows_the_choice_of_scopes(owner, scopes):
    assert 'name="scopes"' in owner.get(scopes).content.decode()


def test_an_owner_sets_scopes_and_a_repeated_submission_is_no_conflict(
    owner, cast, scopes, monkeypatch
):
    sent = {"scopes": ["mcp:paint"], "based_on": owner.get(scopes).context["based_on"]}
    for _ in range(2):
        assert owner.post(scopes, sent)["Location"].startswith(f"{MEMBERS}#member-")
        assert _granted(cast) == ["mcp:paint"]
    assert list(owner.post(scopes, {"scopes": ["mcp:other"]}).context["form"].errors) == ["scopes"]
    with monkeypatch.context() as patch:
        patch.setattr(services, "SCOPES_LIMIT", 0)
        response = owner.post(scopes, {"scopes": ["mcp:paint", "mcp:payroll"]})
        assert response.context["form"].errors["scopes"] == ["Give at most 0 scopes."]
    assert _granted(cast) == ["mcp:paint"]
    owner.post(scopes, {})
    assert _granted(cast) == []


@pytest.mark.parametrize("method", ["get", "post"])
def test_setting_scopes_of_a_member_removed_in_the_meantime_is_not_found(
    owner, cast, scopes, method
):
    def remove_after(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if "auth_user" in sql and "JOIN" in sql:  # the page has found the member
            Membership.objects.filter(user=cast.member.user).delete()
        return result

    with connection.execute_wrapper(remove_after):
        response = getattr(owner, method)(scopes, {"scopes": ["mcp:paint"]})
    assert response.status_code == {"get": 200, "post": 404}[method]
    assert role_of("member") is None
