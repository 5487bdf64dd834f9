import re

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mcphost.identity import attempts, passwords
from mcphost.identity.attempts import FAILURES
from tests.cast import PASSWORD, Cast

LOGIN = "/admin/login/?next=/admin/"
TOO_MANY = "Too many failed attempts"
LONG = "correct-horse-battery"


def sign_in(name: str, password: str = PASSWORD, address: str = "192.0.2.1") -> tuple[int, str]:
    fields = {"username": name, "password": password}
    response = Client().post(LOGIN, fields, REMOTE_ADDR=address)
    return response.status_code, response.content.decode()


def fail(name: str, times: int, address: str = "192.0.2.1") -> None:
    for _ in range(times):
        assert sign_in(name, "wrong", address)[0] == 200


@pytest.mark.parametrize("name", ["owner", "operator", "auditor", "staff"])
def test_staff_and_users_with_a_role_above_member_can_sign_in(cast: Cast, name: str) -> None:
    assert sign_in(name)[0] == 302


def test_cookies_are_hidden_from_scripts_and_not_sent_by_forms_of_other_sites(cast: Cast) -> None:
    client = Client()
    client.get(LOGIN)
    client.post(LOGIN, {"username": "owner", "password": PASSWORD}, REMOTE_ADDR="192.0.2.1")
    assert set(client.cookies) == {"mcphost_session", "mcphost_csrf"}
    for cookie in client.cookies.values():
        assert (cookie["httponly"], cookie["samesite"], cookie["domain"]) == (True, "Lax", "")


@pytest.mark.parametrize("elsewhere", ["//evil.example/", "https://evil.example/", "javascript:x"])
def test_the_sign_in_redirects_only_into_the_console(cast: Cast, elsewhere: str) -> None:
    fields = {"username": "owner", "password": PASSWORD, "next": elsewhere}
    response = Client().post("/admin/login/", fields, REMOTE_ADDR="192.0.2.1")
    assert (response.status_code, response.headers["location"]) == (302, "/admin/")


WAYS_IN = {
    "/admin/": "",
    "/admin/t/acme/tools/?q=a": "",
    "/admin/you/": "",
    "/authorize?client_id=a&redirect_uri=b": "An application wants to act for you",
    "/admin/invitations/made-up/": "You were invited to a tenant",
    "/t/acme/done/made-up": "A call waits for your confirmation",
}


def test_there_is_one_sign_in_page_and_one_session_for_everything(cast: Cast) -> None:
    doors = {way: Client(headers={"accept": "text/html"}).get(way)["Location"] for way in WAYS_IN}
    assert {door.partition("?")[0] for door in doors.values()} == {"/admin/login/"}
    fields = {"username": "owner", "password": PASSWORD}
    for way, door in doors.items():
        visitor = Client(headers={"accept": "text/html"})
        page = visitor.get(door).content.decode()
        said = [reason for reason in WAYS_IN.values() if reason and reason in page]
        assert said == [reason for reason in [WAYS_IN[way]] if reason]
        assert visitor.post(door, fields)["Location"] == way
        # The session is good for all the others.
        led = {visitor.get(other).get("Location", "").partition("?")[0] for other in WAYS_IN}
        assert "/admin/login/" not in led


def test_there_is_one_limit_for_all_ways_in(cast: Cast) -> None:
    doors = [Client(headers={"accept": "text/html"}).get(way)["Location"] for way in WAYS_IN]
    wrong = {"username": "owner", "password": "wrong"}
    for door in (doors * FAILURES)[:FAILURES]:
        assert Client().post(door, wrong, REMOTE_ADDR="192.0.2.1").status_code == 200
    for door in doors:
        right = {"username": "owner", "password": PASSWORD}
        assert Client().post(door, right, REMOTE_ADDR="192.0.2.1").status_code == 429


def test_a_member_signs_in_and_sees_their_own_access_but_no_page_of_the_console(
    cast: Cast,
) -> None:
    client = Client()
    fields = {"username": "member", "password": PASSWORD}
    for door in ("/admin/login/", LOGIN):
        assert client.post(door, fields)["Location"] == "/admin/you/"
    page = client.get("/admin/t/acme/tools/", follow=True).content.decode()
    assert "signed in as member, who has no access to the console" in page
    assert client.get("/admin/you/").status_code == 200


def test_inactive_users_cannot_sign_in(cast: Cast) -> None:
    cast.owner.user.is_active = False
    cast.owner.user.save()
    assert "The user name or the password is wrong" in sign_in("owner")[1]
    assert sign_in("owner")[0] == 200


def test_a_user_who_is_signed_in_continues_or_signs_in_with_another_account(
    cast: Cast,
) -> None:
    client, aim = Client(), "/admin/t/acme/tools/"
    client.force_login(cast.owner.user)
    page = client.get(f"/admin/login/?next={aim}").content.decode()
    assert f'<a href="{aim}">Continue as owner</a>' in page
    page = client.get("/admin/login/?next=//evil.example/").content.decode()
    assert '<a href="/admin/">Continue as owner</a>' in page
    fields = {"username": "operator", "password": PASSWORD}
    assert client.post(f"/admin/login/?next={aim}", fields)["Location"] == aim
    assert "operator" in client.get("/admin/you/").content.decode()


def test_too_many_failures_lock_out_even_the_right_password(cast: Cast) -> None:
    fail("owner", FAILURES)
    response = Client().post(
        LOGIN, {"username": "OWNER", "password": PASSWORD}, REMOTE_ADDR="192.0.2.1"
    )
    assert response.status_code == 429
    assert 870 <= int(response.headers["Retry-After"]) <= 900
    assert f"{TOO_MANY}. Wait 15 minutes, then try again." in response.content.decode()
    assert sign_in("owner")[0] == 429


def test_failures_lock_only_that_name_at_that_address(cast: Cast) -> None:
    fail("owner", FAILURES)
    assert sign_in("auditor")[0] == 302
    assert sign_in("owner", address="192.0.2.2")[0] == 302


def test_an_incomplete_sign_in_form_does_not_reset_the_failure_count(cast: Cast) -> None:
    fail("owner", FAILURES)
    for fields in (
        {"username": "owner"},
        {"username": "owner", "password": ""},
        {"password": PASSWORD},
        {},
    ):
        assert Client().post(LOGIN, fields, REMOTE_ADDR="192.0.2.1").status_code == 200
    assert sign_in("owner")[0] == 429


def test_a_successful_sign_in_refunds_only_its_own_attempt(cast: Cast) -> None:
    fail("owner", FAILURES - 1)
    for _ in range(3):
        assert sign_in("owner")[0] == 302
    fail("owner", 1)
    assert sign_in("owner")[0] == 429


def test_the_right_password_of_an_inactive_account_counts_as_a_failure(cast: Cast) -> None:
    cast.member.user.is_active = False
    cast.member.user.save()
    for _ in range(FAILURES):
        assert sign_in("member")[0] == 200
    assert sign_in("member")[0] == 429


def test_an_address_that_failed_must_pause_after_many_failures_for_a_name(cast, monkeypatch):
    monkeypatch.setattr(attempts, "FIRST_PAUSE_SECONDS", 300)
    for number in range(attempts.NAME_FAILURES):
        fail("owner", 1, f"198.51.100.{number}")
    status, page = sign_in("owner", address="198.51.100.0")
    assert status == 429
    assert "many failed attempts for this user name. Wait 5 minutes" in page
    assert sign_in("owner", address="192.0.2.1")[0] == 302


@pytest.mark.parametrize("other", ["nothere", "OWNER", "inactive"])
def test_unknown_user_names_get_the_same_queries_and_responses_as_known_ones(
    cast: Cast, other: str
) -> None:
    cast.operator.user.username = "inactive"
    cast.operator.user.is_active = False
    cast.operator.user.save()

    def answers(name: str, address: str) -> list[tuple[int, str, list[str]]]:
        found = []
        for _ in range(FAILURES + 1):
            with CaptureQueriesContext(connection) as queries:
                status, page = sign_in(name, "wrong", address)
            page = re.sub("Wait [0-9]+", "Wait", page)
            page = re.sub('csrfmiddlewaretoken" value="[^"]+"', "", page).replace(name, "NAME")
            said = [re.sub(r"'[^']*'|\d+", "?", query["sql"]) for query in queries]
            found.append((status, page, said))
        return found

    assert answers(other, "192.0.2.1") == answers("auditor", "192.0.2.2")


def test_passwords_of_unknown_user_names_are_hashed_as_well(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
):
    hashed: list[str] = []
    hasher = "django.contrib.auth.hashers.MD5PasswordHasher.encode"
    original = MD5PasswordHasher.encode

    def encode(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return original(self, password, salt)

    monkeypatch.setattr(hasher, encode)
    for name in ("owner", "nothere"):
        hashed.clear()
        sign_in(name, "wrong")
        assert hashed == ["wrong"]
    hashed.clear()
    fail("owner", FAILURES - 1)
    sign_in("owner", "wrong")
    assert len(hashed) == FAILURES - 1


def test_a_process_at_its_password_hashing_limit_returns_503_with_retry_after(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(passwords, "_slots", passwords.HashingSlots(0, 0))
        response = Client().post(LOGIN, {"username": "owner", "password": PASSWORD})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert "Too many people are signing in" in response.content.decode()
    assert sign_in("owner", address="127.0.0.1")[0] == 302


def test_guesses_of_the_current_password_are_limited_as_at_the_sign_in(cast: Cast) -> None:
    client = Client(REMOTE_ADDR="192.0.2.1")
    client.force_login(cast.owner.user)
    new = {"password": LONG, "again": LONG}
    for _ in range(FAILURES):
        page = client.post("/admin/password/", {"present": "no", **new})
        assert "This is not your current password." in page.content.decode()
    for present in ("no", PASSWORD):
        page = client.post("/admin/password/", {"present": present, **new})
        assert page.status_code == 429
        assert int(page.headers["Retry-After"]) <= 900
        assert TOO_MANY in page.content.decode()
    assert sign_in("owner")[0] == 429
