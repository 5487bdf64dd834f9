"""Pages of links to accounts: staff issue one, and the person chooses a password."""

import re

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.validators import validate_email
from django.test import Client
from pytest_django.fixtures import Settings

from mcphost.audit.models import Entry
from mcphost.console.mail import send
from tests.cast import PASSWORD, Cast
from tests.console.conftest import Browser

CHOSEN = {"password": "correct-horse-battery", "again": "correct-horse-battery"}
UNKNOWN = f"/admin/account-links/mcph_account_{'x' * 43}/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(staff: Client, cast: Cast) -> str:
    """The link that staff get for the operator."""
    return link_in(staff.post(f"/admin/users/{cast.operator.user.pk}/password/").content.decode())


def link_in(text: str) -> str:
    (link,) = set(re.findall(r"/admin/account-links/mcph_account_[\w-]+/", text))
    return str(link)


def test_a_person_chooses_a_password_and_is_signed_in_here_and_nowhere_else(
    cast: Cast, browse: Browser, path: str
) -> None:
    elsewhere, client = browse(cast.operator), Client()
    page = client.get(path)
    assert "operator</b>" in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert elsewhere.get("/admin/you/").status_code == 200
    done = client.post(path, CHOSEN, follow=True)
    assert done.redirect_chain == [("/admin/you/", 302)]
    assert "Your password is set." in done.content.decode()
    assert elsewhere.get("/admin/you/").status_code == 302
    assert client.get(path).status_code == 404
    assert Client().login(username="operator", password=CHOSEN["password"])


def test_reading_a_link_changes_nothing(path: str) -> None:
    for method in ("get", "head"):
        assert getattr(Client(), method)(path).status_code == 200
    assert Client().put(path).status_code == 405
    assert User.objects.get(username="operator").check_password(PASSWORD)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"password": "short", "again": "short"}, {"password", "again"}),
        ({"password": "operator", "again": "operator"}, {"password", "again"}),
        ({**CHOSEN, "again": "something-else"}, {"again"}),
        ({}, {"password", "again"}),
    ],
)
def test_a_password_must_be_good_and_typed_twice(
    path: str, fields: dict[str, str], wrong: set[str]
) -> None:
    page = Client().post(path, fields)
    assert set(page.context["form"].errors) == wrong
    assert User.objects.get(username="operator").check_password(PASSWORD)
    assert Client().post(path, CHOSEN).status_code == 302


def test_used_and_invented_links_get_the_same_response(path: str) -> None:
    Client().post(path, CHOSEN)
    used, unknown = Client().get(path), Client().get(UNKNOWN)
    assert (used.status_code, used.content) == (404, unknown.content)
    assert Client().post(path, CHOSEN).content == unknown.content


def test_staff_may_stop_the_present_password_at_once(
    staff: Client, cast: Cast, browse: Browser
) -> None:
    intruder = browse(cast.owner)
    page = staff.post(f"/admin/users/{cast.owner.user.pk}/password/", {"lock_out": "on"})
    assert page.context["crumbs"][-1].title == "owner"
    assert intruder.get("/admin/you/").status_code == 302
    assert not Client().login(username="owner", password=PASSWORD)
    assert Client().post(link_in(page.content.decode()), CHOSEN).status_code == 302


def test_staff_change_their_own_password_as_others_do(staff: Client, cast: Cast) -> None:
    response = staff.post(f"/admin/users/{cast.staff.user.pk}/password/")
    assert response["Location"] == "/admin/password/"
    assert not Entry.objects.filter(action="user.link_issued").exists()


def test_a_link_is_sent_to_the_address_of_the_account_if_there_is_a_mail_server(
    staff: Client, cast: Cast, settings: Settings
) -> None:
    User.objects.filter(username="operator").update(email="operator@x.example")
    issue = f"/admin/users/{cast.operator.user.pk}/password/"
    staff.post(issue)
    assert mail.outbox == []
    settings.MCPHOST_SENDS_EMAIL = True
    text = staff.post(issue).content.decode()
    assert "was sent to operator@x.example" in text
    (message,) = mail.outbox
    assert message.to == ["operator@x.example"]
    assert f"http://testserver{link_in(text)}" in message.body
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", 1, 1
    text = staff.post(issue).content.decode()
    assert "did not take the message" in text
    assert link_in(text)


@pytest.mark.parametrize("domain", ["xn--ü.de", f"{'ü' * 60}.de", "b.de\u2028"])
def test_a_link_is_shown_if_no_server_could_send_to_the_address(
    staff: Client, cast: Cast, settings: Settings, domain: str
) -> None:
    validate_email(f"operator@{domain}")
    User.objects.filter(username="operator").update(email=f"operator@{domain}")
    settings.MCPHOST_SENDS_EMAIL = True
    text = staff.post(f"/admin/users/{cast.operator.user.pk}/password/").content.decode()
    assert "did not take the message" in text
    assert Client().get(link_in(text)).status_code == 200


@pytest.mark.parametrize("separator", ["\n", "\r", "\x0b", "\x1c", "\x85", "\u2028"])
def test_a_subject_is_one_header(separator: str) -> None:
    assert send("a@x.example", f"Invitation to Acme{separator}Bcc: b@x.example", "Text")
    (message,) = mail.outbox
    assert message.subject == "Invitation to Acme Bcc: b@x.example"
    assert "Bcc" not in message.message()


def test_the_host_of_a_request_is_in_no_link_if_the_public_address_is_known(
    owner: Client, staff: Client, cast: Cast, settings: Settings
) -> None:
    User.objects.filter(username="operator").update(email="operator@x.example")
    settings.MCPHOST_SENDS_EMAIL, settings.MCPHOST_PUBLIC_URL = True, "https://mcp.example.com"
    settings.ALLOWED_HOSTS = [".example.com"]
    invitation = {"role": "member", "days": "7", "sets_up": "on", "email": "new@x.example"}
    token = {"name": "ci", "scopes": "mcp:list", "owner": str(cast.owner.user.pk), "days": "1"}
    operator = cast.operator.user.pk
    posts = [
        (staff, f"/admin/users/{operator}/password/", {}),
        (owner, f"/admin/t/acme/members/{operator}/password/", {}),
        (owner, "/admin/t/acme/members/", {"username": "newcomer", **invitation}),
        (owner, "/admin/t/acme/tokens/new/", token),
    ]
    for client, path, fields in posts:
        page = client.post(path, fields, headers={"host": "evil.example.com:4444"})
        assert page.status_code in (200, 302)
        assert "evil.example.com" not in page.content.decode()
    assert "https://mcp.example.com/t/acme/mcp" in page.content.decode()
    assert len(mail.outbox) == 3
    for message in mail.outbox:
        assert "https://mcp.example.com/admin/" in message.body
        assert "evil.example.com" not in message.body


def test_an_owner_has_a_link_sent_and_never_sees_it(
    owner: Client, cast: Cast, settings: Settings
) -> None:
    User.objects.filter(username="operator").update(email="operator@x.example")
    members = "/admin/t/acme/members/"
    send = f"{members}{cast.operator.user.pk}/password/"
    assert "Send password link" not in owner.get(members).content.decode()
    assert owner.post(send).status_code == 404
    settings.MCPHOST_SENDS_EMAIL = True
    assert owner.get(members).content.decode().count("Send password link") == 1
    page = owner.post(send, follow=True).content.decode()
    assert "operator was sent a link" in page
    (message,) = mail.outbox
    link = link_in(message.body)
    assert link not in page
    assert Client().post(link, CHOSEN).status_code == 302
    assert "within the last minutes" in owner.post(send, follow=True).content.decode()
    assert owner.get(send).status_code == 405
    of_owner = f"{members}{cast.member.user.pk}/password/"
    assert "has no e-mail address" in owner.post(of_owner, follow=True).content.decode()
