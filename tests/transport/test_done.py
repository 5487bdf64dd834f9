"""The page of a link: thanks for a good one, one answer for any other."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.calls import links as calls
from mcphost.calls.links import Link
from mcphost.serving import links
from mcphost.vault import sealer
from tests.cast import Cast
from tests.mcp import Exchange

pytestmark = pytest.mark.django_db(transaction=True)


def a_link(cast: Cast) -> tuple[Link, str]:
    """A link of a call at `acme`, and its path."""
    link = Link(cast.acme.id, uuid4(), "payment")
    sealer.warm(cast.acme.id)
    return link, f"/t/acme/done/{links._seal(link, timezone.now() + timedelta(hours=1))}"


@pytest.mark.parametrize("method", ["get", "post"])
def test_who_opens_a_good_link_is_thanked_and_it_is_done(cast: Cast, method: str) -> None:
    link, path = a_link(cast)
    reply = getattr(Client(enforce_csrf_checks=True), method)(path)
    assert reply.status_code == 200
    assert "Thank you" in reply.content.decode()
    assert calls.is_open(link)


def test_a_page_is_kept_by_nobody_and_tells_nobody_where_it_was(cast: Cast) -> None:
    headers = Client().get(a_link(cast)[1]).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "Set-Cookie" not in headers


@pytest.mark.parametrize("method", ["head", "put", "delete", "options"])
def test_nothing_else_opens_a_link(cast: Cast, method: str) -> None:
    link, path = a_link(cast)
    assert getattr(Client(), method)(path).status_code == 405
    assert not calls.is_open(link)


def test_bad_links_of_a_tenant_and_of_nobody_get_the_same_bytes(cast: Cast) -> None:
    good = a_link(cast)[1]
    bad = [
        good[:-1],
        good.replace("/acme/", "/globex/"),
        good.replace("/acme/", "/nobody/"),
        "/t/acme/done/x",
        "/t/globex/done/x",
        "/t/nobody/done/x",
    ]
    replies = [Client().get(path) for path in bad]
    assert {reply.status_code for reply in replies} == {404}
    assert len({reply.content for reply in replies}) == 1


async def test_the_server_sends_links_to_their_page(cast: Cast) -> None:
    exchange = Exchange("/t/nobody/done/x", {"host": "localhost"}, "GET")
    exchange.write(b"")
    reply = await exchange.done()
    assert reply.status == 404
    assert b"This link does not work" in reply.raw
