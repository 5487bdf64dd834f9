"""What OAuth leaves behind is deleted in portions, and nothing that is in use."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.identity.models import (
    AuthorizationCode,
    Connection,
    OAuthClient,
    RefreshToken,
    Token,
)
from mcphost.identity.oauth import pruning, registration
from mcphost.identity.oauth.pruning import PRUNED_AT_ONCE, end_unused, prune
from mcphost.serving.tasks import upkeep
from mcphost.tenants.models import Membership
from tests.cast import Cast

pytestmark = pytest.mark.django_db

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)


def client(name: str = "dcr-a", *, age: timedelta = DAY, **values: Any) -> OAuthClient:
    row = OAuthClient.objects.create(id=name, name="A", redirect_uris=[], **values)
    OAuthClient.objects.filter(pk=name).update(created_at=timezone.now() - age)
    return row


def connection(
    of: OAuthClient,
    *,
    ended: timedelta | None = None,
    consented: timedelta = timedelta(0),
    used: timedelta | None = None,
) -> Connection:
    now = timezone.now()
    return Connection.objects.create(
        membership=Membership.objects.get(user__username="member"),
        client=of,
        consented_at=now - consented,
        last_used_at=None if used is None else now - used,
        ended_at=None if ended is None else now - ended,
    )


def code(of: OAuthClient, expired: timedelta, key: str = "a", **values: Any) -> AuthorizationCode:
    return AuthorizationCode.objects.create(
        id=key,
        membership=Membership.objects.get(user__username="member"),
        client=of,
        scopes=[],
        expires_at=timezone.now() - expired,
        **values,
    )


def access_token(of: Connection | None, expired: timedelta, key: str = "a") -> Token:
    member = Membership.objects.get(user__username="member")
    return Token.objects.create(
        id=key,
        tenant_id=member.tenant_id,
        owner=member.user,
        membership=member,
        connection=of,
        audience="mcp",
        name="A",
        digest=key.encode(),
        expires_at=timezone.now() - expired,
    )


def refresh_token(of: Connection, expired: timedelta, **values: Any) -> RefreshToken:
    expires_at = timezone.now() - expired
    return RefreshToken.objects.create(id="a", connection=of, expires_at=expires_at, **values)


OVER: Final[dict[str, Callable[[], object]]] = {
    "a registered client of yesterday": lambda: client(age=DAY + MINUTE),
    "a document that nobody uses": lambda: client(
        "https://a.example/", fresh_until=timezone.now() - timedelta(days=7) - MINUTE
    ),
    "a code": lambda: code(client(age=HOUR), HOUR + MINUTE),
    "a redeemed code": lambda: code((row := client()), HOUR + MINUTE, connection=connection(row)),
    "a refresh token": lambda: refresh_token(connection(client()), MINUTE),
    "a used refresh token": lambda: refresh_token(
        connection(client()), MINUTE, used_at=timezone.now(), answer=b"a"
    ),
    "an access token": lambda: access_token(connection(client()), HOUR + MINUTE),
    "an ended connection": lambda: connection(client(age=HOUR), ended=timedelta(days=90) + MINUTE),
}
IN_USE: Final[dict[str, Callable[[], object]]] = {
    "a registered client of today": lambda: client(age=DAY - MINUTE),
    "a connected client": lambda: connection(client(age=90 * DAY)),
    "a client whose connection ended": lambda: connection(client(age=90 * DAY), ended=89 * DAY),
    "a client that waits for its code": lambda: code(client(age=9 * DAY), -MINUTE),
    "a client whose code has just expired": lambda: code(client(age=9 * DAY), HOUR - MINUTE),
    "a document that serves": lambda: client(
        "https://a.example/", age=99 * DAY, fresh_until=timezone.now() - 7 * DAY + MINUTE
    ),
    "a document of a connected client": lambda: connection(
        client("https://a.example/", fresh_until=timezone.now() - 99 * DAY)
    ),
    "a refresh token": lambda: refresh_token(connection(client()), -MINUTE),
    "a used refresh token": lambda: refresh_token(
        connection(client()), -MINUTE, used_at=timezone.now() - DAY
    ),
    "an access token": lambda: access_token(connection(client()), HOUR - MINUTE),
    "a token that was pasted": lambda: access_token(None, 99 * DAY),
}


def rows() -> int:
    models = (OAuthClient, Connection, AuthorizationCode, RefreshToken)
    return sum(model.objects.count() for model in models) + Token.objects.filter(name="A").count()


@pytest.mark.parametrize("make", OVER.values(), ids=OVER)
def test_what_is_over_is_deleted_and_nothing_else(cast: Cast, make: Callable[[], object]) -> None:
    make()
    before = rows()
    assert prune() == 1
    assert rows() == before - 1
    assert prune() == 0


@pytest.mark.parametrize("make", IN_USE.values(), ids=IN_USE)
def test_what_is_in_use_stays(cast: Cast, make: Callable[[], object]) -> None:
    make()
    before = rows()
    assert prune() == 0
    assert rows() == before


def test_a_client_goes_with_its_last_connection_and_code(cast: Cast) -> None:
    row = client(age=99 * DAY)
    code(row, DAY, connection=connection(row, ended=91 * DAY))
    assert prune() == 3
    assert rows() == 0


def test_unconnected_clients_go_within_the_hour_when_no_other_can_register(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (pruning, registration):
        monkeypatch.setattr(module, "MAX_UNCONNECTED", 3)
    connection(client("dcr-connected", age=DAY))
    client("dcr-old", age=HOUR + MINUTE)
    client("dcr-new", age=HOUR - MINUTE)
    assert prune() == 0
    client("dcr-last", age=MINUTE)
    assert prune() == 1
    left = set(OAuthClient.objects.values_list("id", flat=True))
    assert left == {"dcr-connected", "dcr-new", "dcr-last"}


@pytest.mark.parametrize("used", [None, 91 * DAY])
def test_a_connection_that_expired_and_was_not_used_for_90_days_is_ended(
    cast: Cast, used: timedelta | None
) -> None:
    row = connection(client(), consented=91 * DAY, used=used)
    refresh_token(row, MINUTE)
    assert (end_unused(), end_unused()) == (1, 0)
    row.refresh_from_db()
    assert row.ended_at is not None
    entry = Entry.objects.get(action="connection.ended")
    assert entry.facts == {"client": "A", "reason": "its sign-in expired"}
    assert entry.actor_label == "authorization server"


@pytest.mark.parametrize(
    "make",
    [
        lambda: connection(client(), consented=89 * DAY),
        lambda: connection(client(), consented=99 * DAY, used=89 * DAY),
        lambda: refresh_token(connection(client(), consented=99 * DAY), -MINUTE),
        lambda: connection(client(), consented=99 * DAY, ended=DAY),
    ],
    ids=["consented", "used", "can be refreshed", "ended"],
)
def test_a_connection_that_may_be_used_again_stays(cast: Cast, make: Callable[[], object]) -> None:
    make()
    ended_at = list(Connection.objects.values_list("ended_at"))
    assert end_unused() == 0
    assert list(Connection.objects.values_list("ended_at")) == ended_at


def test_upkeep_ends_what_is_unused_and_deletes_in_portions_all_that_is_over(cast: Cast) -> None:
    names = [f"dcr-{number}" for number in range(PRUNED_AT_ONCE + 1)]
    OAuthClient.objects.bulk_create(OAuthClient(id=name, name="A") for name in names)
    OAuthClient.objects.update(created_at=timezone.now() - 2 * DAY)
    code(OAuthClient.objects.get(id="dcr-0"), DAY)
    unused = connection(client("dcr-unused"), consented=91 * DAY)
    assert prune() == PRUNED_AT_ONCE
    assert upkeep.run(upkeep.CHORES) == ""
    unused.refresh_from_db()
    assert unused.ended_at is not None
    assert rows() == 2
