"""An invited person without an account sets one up by the link."""

import re

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.tenants import invitations
from mcphost.tenants.invitations import NewAccount
from mcphost.tenants.models import Invitation, Membership
from mcphost.tenants.roles import Role
from tests.cast import PASSWORD, Cast

FIELDS = {
    "first_name": "Nova",
    "last_name": "Comer",
    "password": "correct-horse-battery",
    "again": "correct-horse-battery",
}
MEMBERS = "/admin/t/acme/members/"

pytestmark = pytest.mark.django_db


def invite(cast: Cast, name: str = "newcomer", *, sets_up: bool = True) -> str:
    made = invitations.invite(
        cast.acme.id,
        name,
        Role.AUDITOR,
        actor=Actor.person(cast.owner.user.pk, cast.owner.user.get_username()),
        sets_up=sets_up,
    )
    return f"/admin/invitations/{made.link}/"


def test_a_person_without_an_account_sets_one_up_and_is_a_member(cast: Cast) -> None:
    path, client = invite(cast), Client()
    text = client.get(path).content.decode()
    for word in ("owner", "newcomer", "auditor", "Acme"):
        assert f"{word}</b>" in text
    assert not User.objects.filter(username="newcomer").exists()
    done = client.post(path, FIELDS, follow=True)
    assert done.redirect_chain == [("/admin/you/", 302)]
    assert "Your account is set up" in done.content.decode()
    user = User.objects.get(username="newcomer")
    assert (user.get_full_name(), user.is_staff) == ("Nova Comer", False)
    assert user.check_password(FIELDS["password"])
    membership = Membership.objects.get(user=user)
    assert (membership.role, membership.added_by) == ("auditor", "owner")
    actions = Entry.objects.filter(actor_label="newcomer").order_by("id")
    assert [each.action for each in actions] == ["user.created", "invitation.accepted"]
    assert Client().get(path)["Location"].startswith("/admin/login/")
    assert Client().post(path, FIELDS).status_code == 302
    assert User.objects.filter(username="newcomer").count() == 1


def test_an_invitation_for_an_account_sets_none_up(cast: Cast) -> None:
    path = invite(cast, sets_up=False)
    assert Client().get(path)["Location"] == f"/admin/login/?next={path}"
    assert Client().post(path, FIELDS)["Location"].startswith("/admin/login/")
    link = path.split("/")[-2]
    assert invitations.set_up(link, NewAccount("correct-horse"), timezone.now()) is None
    assert not User.objects.filter(username="newcomer").exists()


@pytest.mark.parametrize("name", ["newcomer", "NewComer"])
def test_an_account_of_that_name_is_not_replaced_and_can_accept(cast: Cast, name: str) -> None:
    User.objects.create_user(name, password=PASSWORD)
    path = invite(cast)
    page = Client().post(path, FIELDS)
    assert "There is an account with that name already." in page.content.decode()
    user = User.objects.get(username=name)
    assert user.check_password(PASSWORD)
    assert not Membership.objects.filter(user=user).exists()
    assert Invitation.objects.get().ended_at is None
    way = re.search(r'href="([^"]+sign_in=1)"', page.content.decode())
    assert way is not None
    assert Client().get(way[1])["Location"].startswith("/admin/login/?next=")
    client = Client()
    client.force_login(user)
    assert client.get(way[1]).status_code == (200 if name == "newcomer" else 404)


def test_an_invitation_that_no_longer_holds_sets_up_nothing(cast: Cast) -> None:
    path = invite(cast)
    User.objects.filter(username="owner").update(is_active=False)
    assert Client().get(path)["Location"].startswith("/admin/login/")
    link = path.split("/")[-2]
    assert invitations.set_up(link, NewAccount("correct-horse"), timezone.now()) is None
    assert not User.objects.filter(username="newcomer").exists()


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"password": "password", "again": "password"}, {"password", "again"}),
        ({"again": "another"}, {"again"}),
        ({"first_name": "x" * 151}, {"first_name"}),
    ],
)
def test_what_a_person_types_is_checked(
    cast: Cast, changed: dict[str, str], wrong: set[str]
) -> None:
    path = invite(cast)
    page = Client().post(path, {**FIELDS, **changed})
    assert set(page.context["form"].errors) == wrong
    assert not User.objects.filter(username="newcomer").exists()


def test_owners_make_such_invitations_and_may_have_them_sent(
    owner: Client, cast: Cast, settings: Settings
) -> None:
    fields = {"username": "newcomer", "role": "member", "days": "7", "sets_up": "on"}
    assert "email" not in owner.get(MEMBERS).context["form"].fields
    page = owner.post(MEMBERS, {**fields, "email": "new@x.example"})
    assert "creates the account newcomer" in page.content.decode()
    assert Invitation.objects.get().sets_up
    assert mail.outbox == []
    settings.MCPHOST_SENDS_EMAIL = True
    page = owner.post(MEMBERS, {**fields, "email": "new@x.example"})
    assert "was sent to new@x.example" in page.content.decode()
    (message,) = mail.outbox
    assert (message.to, message.subject) == (["new@x.example"], "Invitation to Acme")
    link = re.search(r"/admin/invitations/[\w-]+/", message.body)
    assert link is not None
    assert Client().post(link[0], FIELDS).status_code == 302
    assert Membership.objects.get(user__username="newcomer").role == "member"
    assert Entry.objects.filter(action="member.invited").latest("id").facts["account"]
