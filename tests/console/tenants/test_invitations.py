"""Tests of the page of an invitation, for the invited user and for others."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcphost.audit.records import Actor
from mcphost.tenants import invitations
from mcphost.tenants.models import Invitation, Membership
from mcphost.tenants.roles import Role
from tests.cast import PASSWORD, Cast

UNKNOWN = f"/admin/invitations/{invitations.PREFIX}{'x' * 43}/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def newcomer(cast: Cast) -> User:
    return User.objects.create_user("newcomer", password=PASSWORD)


@pytest.fixture
def path(cast: Cast, newcomer: User) -> str:
    made = invitations.invite(
        cast.acme.id,
        "newcomer",
        Role.AUDITOR,
        actor=Actor.person(cast.owner.user.pk, cast.owner.user.get_username()),
    )
    return f"/admin/invitations/{made.link}/"


@pytest.fixture
def invited(newcomer: User) -> Client:
    client = Client()
    client.force_login(newcomer)
    return client


def roles() -> list[tuple[str, str]]:
    found = Membership.objects.filter(tenant__slug="acme", user__username="newcomer")
    return list(found.values_list("user__username", "role"))


def test_an_invited_user_signs_in_reads_the_offer_and_accepts(path: str) -> None:
    client = Client()
    door = client.get(path)
    assert door["Location"] == f"/admin/login/?next={path}"
    fields = {"username": "newcomer", "password": PASSWORD}
    assert client.post(door["Location"], fields)["Location"] == path
    page = client.get(path)
    text = page.content.decode()
    for word in ("owner", "newcomer", "auditor", "Acme"):
        assert f"{word}</" in text
    assert page["Cache-Control"].find("no-store") >= 0
    assert roles() == []
    done = client.post(path, {"_accept": "1"}, follow=True)
    assert done.redirect_chain == [("/admin/you/", 302)]
    assert "You accepted the invitation." in done.content.decode()
    assert "invited by owner and accepted" in done.content.decode()
    assert roles() == [("newcomer", "auditor")]
    assert client.get(path).status_code == 404
    assert client.get("/admin/").status_code == 200


def test_reading_an_invitation_changes_nothing(invited: Client, path: str) -> None:
    for method in ("get", "head"):
        assert getattr(invited, method)(path).status_code == 200
    assert invited.put(path).status_code == 405
    assert invited.post(path).status_code == 404
    assert roles() == []
    assert Invitation.objects.get().outcome == ""


def test_an_invited_user_can_decline(invited: Client, path: str) -> None:
    page = invited.post(path, {"_decline": "1"}, follow=True).content.decode()
    assert "You declined the invitation." in page
    assert "You have no role in any tenant" in page
    assert roles() == []
    assert invited.post(path, {"_accept": "1"}).status_code == 404


@pytest.mark.parametrize("name", ["owner", "stranger", "member", "staff"])
def test_other_accounts_get_the_same_response_as_for_an_unknown_link(cast, browse, path, name):
    client = browse(getattr(cast, name))
    for method, fields in (("get", {}), ("post", {"_accept": "1"}), ("post", {"_decline": "1"})):
        real, unknown = (getattr(client, method)(each, fields) for each in (path, UNKNOWN))
        assert (real.status_code, unknown.status_code) == (404, 404)
        assert real.content == unknown.content
        for each in (real, unknown):
            del each.headers["Expires"]  # it has the time of the response
        assert real.headers == unknown.headers
    assert roles() == []
    assert Invitation.objects.get().outcome == ""


def test_links_without_a_session_redirect_to_the_sign_in_without_a_query(
    path, django_assert_num_queries
):
    for each in (path, UNKNOWN, "/admin/invitations/x/"):
        for method in ("get", "post"):
            with django_assert_num_queries(0):  # type: ignore[operator]
                response = getattr(Client(), method)(each)
            assert response.status_code == 302
            assert response["Location"] == f"/admin/login/?next={each}"


def test_invitation_links_are_not_logged(cast, browse, path, caplog):
    browse(cast.stranger).get(path)
    assert "mcph_invitation" not in caplog.text


def test_a_user_without_a_role_can_sign_in_but_not_open_console_pages(invited: Client):
    assert invited.get("/admin/you/").status_code == 200
    for page in ("", "tenants/", "t/acme/", "users/", "calls/"):
        assert invited.get(f"/admin/{page}")["Location"].startswith("/admin/login/")
