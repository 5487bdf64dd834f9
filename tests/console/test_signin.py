import pytest
from django.test import Client

from mcphost.console.signin import FAILURES, MOST_KEPT, TOO_MANY, WITHIN_SECONDS, Attempts
from tests.cast import PASSWORD, Cast

LOGIN = "/admin/login/?next=/admin/"
KEY = ("olga", "192.0.2.1")


def sign_in(name: str, password: str = PASSWORD, address: str = "192.0.2.1") -> tuple[int, str]:
    fields = {"username": name, "password": password}
    response = Client().post(LOGIN, fields, REMOTE_ADDR=address)
    return response.status_code, response.content.decode()


@pytest.mark.parametrize("name", ["owner", "operator", "auditor", "staff", "stranger"])
def test_staff_and_everybody_with_a_role_above_member_sign_in(cast: Cast, name: str) -> None:
    assert sign_in(name)[0] == 302


@pytest.mark.parametrize("elsewhere", ["//evil.example/", "https://evil.example/", "javascript:x"])
def test_a_sign_in_leads_nowhere_but_into_the_console(cast: Cast, elsewhere: str) -> None:
    fields = {"username": "owner", "password": PASSWORD, "next": elsewhere}
    response = Client().post("/admin/login/", fields, REMOTE_ADDR="192.0.2.1")
    assert (response.status_code, response.headers["location"]) == (302, "/admin/")


def test_a_member_is_told_that_they_have_no_access(cast: Cast) -> None:
    status, page = sign_in("member")
    assert status == 200
    assert "no access here" in page


def test_who_was_switched_off_does_not_sign_in(cast: Cast) -> None:
    cast.owner.user.is_active = False
    cast.owner.user.save()
    assert sign_in("owner")[0] == 200


def test_too_many_failures_refuse_even_the_right_password(cast: Cast) -> None:
    for _ in range(FAILURES):
        assert TOO_MANY not in sign_in("owner", "wrong")[1]
    assert TOO_MANY in sign_in("owner")[1]
    assert TOO_MANY in sign_in("OWNER")[1]


def test_failures_count_per_name_and_per_address(cast: Cast) -> None:
    for _ in range(FAILURES):
        sign_in("owner", "wrong")
    assert sign_in("auditor")[0] == 302
    assert sign_in("owner", address="192.0.2.2")[0] == 302


def test_signing_in_forgets_earlier_failures(cast: Cast) -> None:
    for _ in range(2):
        for _ in range(FAILURES - 1):
            sign_in("owner", "wrong")
        assert sign_in("owner")[0] == 302


def test_failures_are_forgotten_after_a_while() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(FAILURES):
        attempts.failed(KEY)
    assert attempts.exhausted(KEY)
    now[0] += WITHIN_SECONDS
    assert not attempts.exhausted(KEY)


def test_what_is_kept_of_failures_is_bounded() -> None:
    attempts = Attempts(lambda: 0.0)
    for _ in range(FAILURES):
        attempts.failed(KEY)
    for number in range(MOST_KEPT):
        attempts.failed((str(number), "192.0.2.1"))
    assert not attempts.exhausted(KEY)


def test_one_signs_out_by_a_form(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.owner.user)
    assert client.post("/admin/logout/").status_code == 200
    assert client.get("/admin/").status_code == 302


def test_a_signed_in_member_is_told_why_they_see_the_sign_in(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.member.user)
    page = client.get("/admin/", follow=True).content.decode()
    assert "signed in as member" in page
