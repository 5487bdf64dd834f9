"""A member who is lost at any step of connecting a client gets nothing, and neither does the client."""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.test import Client

from mcphost.identity import selectors
from mcphost.identity.models import Connection, Token
from mcphost.tenants.roles import Audience
from mcphost.tenants.services import close_tenant, remove_member
from tests.cast import ACTOR, PASSWORD, Cast
from tests.oauth import (
    CHALLENGE,
    REDIRECT,
    error_of,
    make_client,
    membership_of,
    pair_of,
    query_of,
    redeem,
    refresh,
)

pytestmark = pytest.mark.django_db

URL: Final = "/authorize?" + urlencode(
    {
        "response_type": "code",
        "client_id": "dcr-laptop",
        "redirect_uri": REDIRECT,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": "http://testserver/t/acme/mcp",
    }
)
STEPS: Final = ("opened", "signed in", "read", "decided", "redeemed", "refreshed")


def _deactivate(cast: Cast) -> None:
    cast.member.user.is_active = False
    cast.member.user.save()


LOSSES: Final[dict[str, Callable[[Cast], object]]] = {
    "removed": lambda cast: remove_member(cast.acme.id, cast.member.user, actor=ACTOR),
    "deactivated": _deactivate,
    "deleted": lambda cast: cast.member.user.delete(),
    "closed": lambda cast: close_tenant(cast.acme.id, actor=ACTOR),
}


class Way:
    """The steps of one person and one client, in their order. Each keeps what the client got."""

    def __init__(self, cast: Cast) -> None:
        self._client = make_client()
        self._browser = Client(headers={"accept": "text/html"})
        self._form = {"_allow": "1", "tenant": str(membership_of(cast.member).pk)}
        self._door = ""
        self.code = "none"
        self.refresh_token = "none"
        self.access_tokens: list[str] = []

    def take(self, step: str) -> None:
        steps: dict[str, Callable[[], Any]] = {
            "opened": self._open,
            "signed in": lambda: self._browser.post(
                self._door, {"username": "member", "password": PASSWORD}
            ),
            "read": lambda: self._browser.get(URL),
            "decided": self._decide,
            "redeemed": lambda: self._keep(redeem(self._client, self.code)),
            "refreshed": lambda: self._keep(refresh(self._client, self.refresh_token)),
        }
        steps[step]()

    def _open(self) -> None:
        self._door = self._browser.get(URL)["Location"]

    def _decide(self) -> None:
        location = self._browser.post(URL, self._form).get("Location", "")
        if location.startswith(REDIRECT):
            self.code = query_of(location).get("code", "none")

    def _keep(self, answer: Any) -> None:
        if answer.status != 200:
            assert error_of(answer) == "invalid_grant"
            return
        pair = pair_of(answer)
        self.access_tokens.append(pair.access)
        self.refresh_token = pair.refresh


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("moment", STEPS)
def test_a_member_who_is_lost_after_a_step_gets_nothing(cast: Cast, moment: str, loss: str) -> None:
    way = Way(cast)
    for step in STEPS:
        way.take(step)
        if step == moment:
            LOSSES[loss](cast)
            selectors.forget_all()
            before = way.code, way.refresh_token, list(way.access_tokens)
    assert (way.code, way.refresh_token, way.access_tokens) == before
    assert all(
        selectors.authenticate(token, Audience.MCP, "acme") is None for token in way.access_tokens
    )
    way.take("refreshed")
    way.take("redeemed")
    assert way.access_tokens == before[2]


def test_a_member_who_stays_gets_a_connection(cast: Cast) -> None:
    way = Way(cast)
    for step in STEPS:
        way.take(step)
    assert len(way.access_tokens) == 2
    for token in way.access_tokens:
        assert selectors.authenticate(token, Audience.MCP, "acme") is not None
    assert Connection.objects.filter(ended_at=None).count() == 1
    assert Token.objects.exclude(connection=None).count() == 2
