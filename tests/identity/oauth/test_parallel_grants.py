"""Tests of redeeming and refreshing at once, in many threads with a connection each."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connections as database
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.identity.models import AuthorizationCode, Connection, RefreshToken, Token
from mcphost.identity.oauth.connections import end
from mcphost.identity.oauth.grants import OAuthAnswer
from mcphost.tenants.services import remove_member
from tests.cast import ACTOR, Cast
from tests.oauth import code_of, error_of, make_client, pair_of, redeem, refresh

pytestmark = pytest.mark.django_db(transaction=True)

TIMES = 20


def _at_once(*acts: Callable[[], OAuthAnswer | bool]) -> list[OAuthAnswer | bool]:
    together = threading.Barrier(len(acts))

    def run(act: Callable[[], OAuthAnswer | bool]) -> OAuthAnswer | bool:
        try:
            together.wait(30)
            return act()
        finally:
            database.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def test_of_many_redemptions_of_a_code_at_once_one_succeeds(cast: Cast) -> None:
    client = make_client()
    code = code_of(client, cast.member)
    answers = _at_once(*[lambda: redeem(client, code)] * TIMES)
    assert Counter(answer.status for answer in answers) == {200: 1, 400: TIMES - 1}
    assert Entry.objects.filter(action="connection.made").count() == 1
    assert not Connection.objects.filter(ended_at=None).exists()
    assert not Token.objects.exclude(connection=None).exists()


def test_many_refreshes_at_once_all_get_the_same_successor(cast: Cast) -> None:
    client = make_client()
    first = pair_of(redeem(client, code_of(client, cast.member)))
    answers = _at_once(*[lambda: refresh(client, first.refresh)] * TIMES)
    assert len({pair_of(answer) for answer in answers}) == 1
    assert RefreshToken.objects.count() == 2
    assert Connection.objects.filter(ended_at=None).count() == 1


def test_two_consents_that_are_redeemed_at_once_make_one_connection(cast: Cast) -> None:
    client = make_client()
    codes = [code_of(client, cast.member) for _ in range(TIMES)]
    answers = _at_once(*[lambda code=code: redeem(client, code) for code in codes])
    assert {answer.status for answer in answers} == {200}
    assert Connection.objects.count() == 1


def test_a_member_who_is_removed_while_a_client_redeems_and_refreshes_has_nothing_left(
    cast: Cast,
) -> None:
    client = make_client()
    first = pair_of(redeem(client, code_of(client, cast.member)))
    codes = [code_of(client, cast.member) for _ in range(6)]

    def remove() -> bool:
        return remove_member(cast.acme.id, cast.member.user, actor=ACTOR)

    *answers, removed = _at_once(
        *[lambda code=code: redeem(client, code) for code in codes],
        *[lambda: refresh(client, first.refresh)] * 6,
        remove,
    )
    assert removed is True
    for answer in answers:
        assert answer.status == 200 or error_of(answer) == "invalid_grant"
    assert not Connection.objects.exists()
    assert not Token.objects.exclude(connection=None).exists()
    assert not RefreshToken.objects.exists()


def test_a_user_who_is_deleted_while_a_client_redeems_and_refreshes_has_nothing_left(
    cast: Cast,
) -> None:
    client = make_client()
    first = pair_of(redeem(client, code_of(client, cast.member)))
    codes = [code_of(client, cast.member) for _ in range(6)]

    def delete() -> bool:
        return bool(cast.member.user.delete())

    *answers, deleted = _at_once(
        *[lambda code=code: redeem(client, code) for code in codes],
        *[lambda: refresh(client, first.refresh)] * 6,
        delete,
    )
    assert deleted is True
    for answer in answers:
        assert answer.status == 200 or error_of(answer) == "invalid_grant"
    assert not User.objects.filter(username="member").exists()
    for model in (Connection, RefreshToken, AuthorizationCode):
        assert not model.objects.exists()
    assert not Token.objects.exclude(connection=None).exists()


def test_a_connection_that_is_ended_while_its_client_refreshes_and_redeems_has_nothing_left(
    cast: Cast,
) -> None:
    client = make_client()
    first = pair_of(redeem(client, code_of(client, cast.member)))
    connection = Connection.objects.get()
    Token.objects.filter(connection=connection).update(expires_at=timezone.now())
    code = code_of(client, cast.member)
    *answers, ended = _at_once(
        *[lambda: refresh(client, first.refresh)] * 6,
        lambda: redeem(client, code),
        lambda: end(cast.acme.id, connection.pk, actor=ACTOR),
    )
    assert ended is True
    for answer in answers:
        assert answer.status == 200 or error_of(answer) == "invalid_grant"
    assert not RefreshToken.objects.filter(connection=connection).exists()
    assert not Token.objects.filter(connection=connection).exists()
