"""Tests of a tenant's page of connected apps."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.identity import selectors
from mcphost.identity.models import Connection, RefreshToken, Token
from mcphost.identity.oauth import connections
from mcphost.identity.selectors import authenticate, live_tokens
from mcphost.tenants.roles import Audience, Role
from mcphost.tenants.services import remove_member, set_member
from tests.cast import Cast
from tests.console.tenant_data import ACTOR, Things
from tests.oauth import connect, connection_of, make_client

APPS = "/admin/t/acme/connected-apps/"

pytestmark = pytest.mark.django_db


def row_of(page: str, connection: object) -> str:
    return page.split(f'<tr id="connection-{connection}"')[1].split("</tr>")[0]


def test_an_owner_sees_the_apps_of_all_members_and_disconnects_one(owner: Client, cast: Cast):
    assert "No connected apps" in owner.get(APPS).content.decode()
    token = connect(make_client(name="Editor"), cast.member).access
    connection = connection_of(cast.member)
    row = row_of(owner.get(APPS).content.decode(), connection)
    shown = ("Editor", "registered itself", "member", "list tools", "call tools", "Disconnect…")
    assert [text for text in shown if text not in row] == []
    path = f"{APPS}{connection}/disconnect/"
    assert "will no longer be able to act for member" in owner.get(path).content.decode()
    page = owner.post(path, follow=True)
    assert "“Editor” of member is disconnected." in page.content.decode()
    assert "No connected apps" in page.content.decode()
    selectors.forget_all()
    assert authenticate(token, Audience.MCP, "acme") is None
    (ended,) = Entry.objects.filter(action="connection.ended")
    assert (ended.actor_label, ended.tenant) == ("owner", cast.acme.id)
    # A second click changes nothing.
    assert owner.post(path)["Location"] == APPS
    assert Entry.objects.filter(action="connection.ended").count() == 1


def test_an_app_leads_to_its_calls_and_shows_a_consent_that_was_renewed(
    owner: Client, cast: Cast
) -> None:
    connect(make_client(name="Editor"), cast.member)
    connection = connection_of(cast.member)
    page = owner.get(APPS).content.decode()
    assert f'href="/admin/t/acme/calls/?principal={connection}"' in page
    assert "consent <time" not in page
    earlier = timezone.now() - timedelta(hours=1)
    Connection.objects.filter(pk=connection).update(created_at=earlier)
    assert "consent <time" in owner.get(APPS).content.decode()


def test_the_audit_log_can_show_connected_apps_only(owner: Client, cast: Cast) -> None:
    connect(make_client(name="Editor"), cast.member)
    page = owner.get("/admin/t/acme/audit-log/?area=connection").content.decode()
    assert "connection.consented" in page
    assert "connection.made" in page
    assert "token.issued" not in page


def test_an_app_shows_what_the_role_of_its_member_allows_today(owner: Client, cast: Cast) -> None:
    set_member(cast.acme.id, cast.member.user, Role.OPERATOR, actor=ACTOR)
    connect(make_client(), cast.member, "mcp:paint")
    connection = connection_of(cast.member)
    assert "use what requires this scope" in row_of(owner.get(APPS).content.decode(), connection)
    set_member(cast.acme.id, cast.member.user, Role.MEMBER, actor=ACTOR)
    row = row_of(owner.get(APPS).content.decode(), connection)
    assert "nothing: the member's role allows none of its scopes" in row


def test_a_removed_member_has_no_connected_app(owner: Client, cast: Cast) -> None:
    connect(make_client(), cast.member)
    path = f"/admin/t/acme/members/{cast.member.user.pk}/remove/"
    assert "1 live token and 1 connected app" in owner.get(path).content.decode()
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    assert "No connected apps" in owner.get(APPS).content.decode()


def test_an_app_whose_sign_in_expired_says_so_until_the_next_consent(
    owner: Client, cast: Cast
) -> None:
    client = make_client()
    connect(client, cast.member)
    connection = connection_of(cast.member)
    assert ">live<" in row_of(owner.get(APPS).content.decode(), connection)
    assert live_tokens(cast.acme.id, timezone.now()).live > (before := live_pasted(cast))
    for end in (lambda rows: rows.update(expires_at=timezone.now()), lambda rows: rows.delete()):
        end(RefreshToken.objects.all())
        assert ">expired<" in row_of(owner.get(APPS).content.decode(), connection)
        assert live_tokens(cast.acme.id, timezone.now()).live == before
    connect(client, cast.member)
    assert connection_of(cast.member) == connection
    assert ">live<" in row_of(owner.get(APPS).content.decode(), connection)


def live_pasted(cast: Cast) -> int:
    """Return how many pasted tokens for MCP clients the tenant has."""
    return Token.objects.filter(
        tenant_id=cast.acme.id, connection=None, audience="mcp", revoked_at=None
    ).count()


def test_the_list_has_pages(owner: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PER_PAGE", 2)
    for number in range(5):
        connect(make_client(f"dcr-{number}", f"Editor {number}"), cast.member)

    def shown(query: str) -> tuple[list[str], dict[str, str]]:
        page = owner.get(f"{APPS}{query}").content.decode()
        links = re.findall(r'href="(\?[^"]+)">(Newer|Older)<', page)
        return re.findall(r"<bdi>(Editor \d)<", page), {word: query for query, word in links}

    first, links = shown("")
    assert first == ["Editor 4", "Editor 3"]
    second, more = shown(links["Older"])
    assert (set(links), second, set(more)) == (
        {"Older"},
        ["Editor 2", "Editor 1"],
        {"Older", "Newer"},
    )
    last, back = shown(more["Older"])
    assert (last, set(back)) == (["Editor 0"], {"Newer"})
    assert shown(back["Newer"])[0] == second
    assert shown(more["Newer"])[0] == first
    found = Connection.objects.get(client="dcr-1").pk
    assert "Editor 1" in shown(f"?at={found}")[0]
    for unknown in (uuid4(), "nonsense"):
        page = owner.get(f"{APPS}?after={unknown}").content.decode()
        assert "There is no page" in page
        assert "Editor" not in page


def test_an_app_of_another_tenant_does_not_exist_here(owner: Client, globex: Things) -> None:
    for send in (owner.get, owner.post):
        assert send(f"{APPS}{globex.connection}/disconnect/").status_code == 404
    assert Connection.objects.get(pk=globex.connection).ended_at is None
