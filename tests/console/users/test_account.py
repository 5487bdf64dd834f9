"""Tests of an account's pages about its own roles and tokens."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.catalogue import services as catalogue
from mcphost.identity import selectors
from mcphost.identity.models import Connection, Token
from mcphost.identity.selectors import authenticate
from mcphost.identity.services import TokenRequest, issue
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Audience
from mcphost.tenants.services import close_tenant, grant_scopes
from tests.cast import PASSWORD, Cast
from tests.console.conftest import Browser
from tests.console.tenant_data import ACTOR, tool_fields
from tests.oauth import connect, connection_of, make_client

YOU = "/admin/you/"
NEW = f"{YOU}t/acme/tokens/new/"
FIELDS = {"name": "laptop", "audience": "mcp", "scopes": ["mcp:list", "mcp:call"], "expires_at": ""}

pytestmark = pytest.mark.django_db


@pytest.fixture
def member(cast: Cast, browse: Browser) -> Client:
    return browse(cast.member)


def test_a_member_without_console_access_issues_and_revokes_an_own_token(member, cast):
    issued = member.post(NEW, FIELDS).context["token"]
    found = authenticate(issued.plaintext, Audience.MCP, "acme")
    assert found.principal.user_id == cast.member.user.pk
    page = member.get(YOU).content.decode()
    assert "laptop" in page
    assert issued.plaintext not in page
    path = f"{YOU}tokens/{issued.id}/revoke/"
    assert (
        "Your token “laptop” for Acme will stop working immediately"
        in member.get(path).content.decode()
    )
    assert member.post(path)["Location"] == YOU
    assert Token.objects.get(pk=issued.id).revoked_at is not None


def test_a_member_finds_the_address_that_clients_connect_to(member: Client):
    page = member.get(YOU).content.decode()
    assert "<code>http://testserver/t/acme/mcp</code>" in page
    assert "/t/globex/mcp" not in page


def test_a_member_is_offered_only_the_permitted_scopes(member, cast, acme):
    for name in ("payroll", "secret"):
        catalogue.create(acme.tenant, tool_fields(name, scopes=(f"mcp:{name}",)), ACTOR)
    grant_scopes(cast.acme.id, cast.member.user, ["mcp:payroll"], actor=ACTOR)
    page = member.get(NEW)
    choices = dict(page.context["form"].fields["scopes"].choices)
    assert set(choices) == {"mcp:list", "mcp:call", "mcp:payroll"}
    assert "mcp:secret" not in page.content.decode()
    refused = member.post(NEW, {**FIELDS, "scopes": ["mcp:secret"]})
    assert list(refused.context["form"].errors) == ["scopes"]


def test_a_token_issued_by_another_user_is_marked_and_can_be_revoked(member: Client, cast: Cast):
    wanted = TokenRequest("not mine", ("mcp:call",))
    token = issue(cast.acme.id, cast.member.user, wanted, actor=ACTOR)
    assert member.get(YOU).content.decode().count("without consent") == 1
    member.post(f"{YOU}tokens/{token.id}/revoke/")
    selectors.forget_all()
    assert authenticate(token.plaintext, Audience.MCP, "acme") is None


def test_a_member_renews_an_own_token_and_revokes_the_line_as_stolen(member: Client, cast: Cast):
    first = member.post(NEW, FIELDS).context["token"]
    assert f"{YOU}tokens/{first.id}/renew/" in member.get(YOU).content.decode()
    page = member.get(f"{YOU}tokens/{first.id}/renew/").content.decode()
    assert "go on under the new one" in page
    renewed = member.post(f"{YOU}tokens/{first.id}/renew/", {"expires_at": "30"}).context["token"]
    found = authenticate(renewed.plaintext, Audience.MCP, "acme")
    assert found is not None
    assert found.principal.id == first.id
    assert renewed.plaintext not in member.get(YOU).content.decode()
    path = f"{YOU}tokens/{renewed.id}/revoke/"
    assert "Revoke as stolen" in member.get(path).content.decode()
    member.post(path, {"stolen": "on"})
    assert not Token.objects.filter(pk__in=[first.id, renewed.id], revoked_at=None).exists()
    # A revoked token is not renewed, and says so.
    refused = member.post(f"{YOU}tokens/{first.id}/renew/", {"expires_at": ""}).content.decode()
    assert "is revoked" in refused
    alone = member.post(NEW, FIELDS).context["token"]
    assert "as stolen" not in member.get(f"{YOU}tokens/{alone.id}/revoke/").content.decode()


def test_a_member_sees_and_disconnects_an_own_app(member: Client, cast: Cast) -> None:
    client = make_client("https://app.example/client.json", "Editor")
    token = connect(client, cast.member).access
    connection = connection_of(cast.member)
    row = member.get(YOU).content.decode().split(f'<tr id="connection-{connection}">')[1]
    row = row.split("</tr>")[0]
    shown = ("Editor", "app.example", "acme", "list tools", "call tools", "Disconnect…")
    assert [text for text in shown if text not in row] == []
    path = f"{YOU}connected-apps/{connection}/disconnect/"
    assert "will no longer be able to act as you in Acme" in member.get(path).content.decode()
    assert authenticate(token, Audience.MCP, "acme") is not None
    page = member.post(path, follow=True)
    assert page.redirect_chain == [(YOU, 302)]
    assert "“Editor” is disconnected from acme." in page.content.decode()
    selectors.forget_all()
    assert authenticate(token, Audience.MCP, "acme") is None
    assert "Connected apps" not in member.get(YOU).content.decode()
    # A second click changes nothing.
    assert member.post(path)["Location"] == YOU
    (ended,) = Entry.objects.filter(action="connection.ended")
    assert (ended.actor_label, ended.target) == ("member", str(connection))
    assert ended.facts == {"client": "Editor", "reason": "revoked"}


def test_an_app_that_registered_itself_is_shown_as_such(member: Client, cast: Cast) -> None:
    connect(make_client(name="<b>Laptop"), cast.member, "mcp:list")
    page = member.get(YOU).content.decode()
    assert "registered itself" in page
    assert "&lt;b&gt;Laptop" in page
    assert "list tools" in page
    assert "call tools" not in page


def test_apps_of_other_users_and_of_closed_tenants_are_not_found(member, cast, acme):
    path = f"{YOU}connected-apps/{acme.connection}/disconnect/"
    unknown = f"{YOU}connected-apps/{uuid4()}/disconnect/"
    for send in (member.get, member.post):
        foreign, missing = send(path), send(unknown)
        assert foreign.status_code == missing.status_code == 404
        assert without_csrf(foreign) == without_csrf(missing)
    assert Connection.objects.get(pk=acme.connection).ended_at is None
    connect(make_client(), cast.member)
    own = f"{YOU}connected-apps/{connection_of(cast.member)}/disconnect/"
    close_tenant(cast.acme.id, actor=ACTOR)
    assert member.get(own).status_code == 404
    assert "Connected apps" not in member.get(YOU).content.decode()


def test_a_member_who_only_connects_apps_is_led_to_nothing_that_they_may_not_open(member: Client):
    page = member.get(YOU)
    linked = set(re.findall(r'href="(/admin/[^"#?]*)"', page.content.decode()))
    assert {path: member.get(path).status_code for path in linked} == dict.fromkeys(linked, 200)
    menu = [item["title"] for group in page.context["menu"].groups for item in group["items"]]
    assert menu == ["Your access"]


def without_csrf(page: Any) -> bytes:
    """Return a page without what differs in each response."""
    return re.sub(rb'name="csrfmiddlewaretoken" value="[^"]*"', b"", page.content)


def test_tokens_of_other_users_and_foreign_tenants_are_not_found(member, cast, acme):
    assert member.get(f"{YOU}tokens/{acme.token}/revoke/").status_code == 404
    assert member.post(f"{YOU}tokens/{acme.token}/revoke/").status_code == 404
    foreign, unknown = (member.get(f"{YOU}t/{slug}/tokens/new/") for slug in ("globex", "nowhere"))
    assert foreign.status_code == unknown.status_code == 404
    assert without_csrf(foreign) == without_csrf(unknown)
    assert member.post(f"{YOU}t/globex/leave/").status_code == 404
    close_tenant(cast.acme.id, actor=ACTOR)
    assert member.get(NEW).status_code == 404


def test_a_member_leaves_a_tenant_after_confirmation(member: Client, cast: Cast) -> None:
    path = f"{YOU}t/acme/leave/"
    page = member.get(path).content.decode()
    assert "You will lose the role of member in Acme, which has 1 owner." in page
    assert "1 live token will stop working permanently, even if you return." in page
    assert "This cannot be undone." not in page
    assert "no longer have a role in Acme" in member.post(path, follow=True).content.decode()
    assert not Membership.objects.filter(user=cast.member.user).exists()
    assert authenticate(cast.member.mcp_token, Audience.MCP, "acme") is None


def test_names_with_backticks_are_shown_as_they_are(member: Client, cast: Cast) -> None:
    Tenant.objects.filter(pk=cast.acme.id).update(title="Plan `B`")
    connect(make_client("https://app.example/client.json", "The `Editor`"), cast.member)
    connection = connection_of(cast.member)
    for path, sentence in (
        ("t/acme/leave/", "the role of member in Plan `B`, which has"),
        (f"connected-apps/{connection}/disconnect/", "“The `Editor`” will no longer be able"),
        (f"connected-apps/{connection}/disconnect/", "act as you in Plan `B`.</li>"),
        (f"tokens/{cast.member.mcp_token.split('_')[1]}/revoke/", "for Plan `B` will stop"),
    ):
        assert sentence in member.get(f"{YOU}{path}").content.decode()
    done = member.post(f"{YOU}connected-apps/{connection}/disconnect/", follow=True)
    assert "<p>“The `Editor`” is disconnected from acme.</p>" in done.content.decode()
    left = member.post(f"{YOU}t/acme/leave/", follow=True).content.decode()
    assert "<p>You no longer have a role in Plan `B`.</p>" in left


def test_the_sign_in_without_a_safe_target_redirects_to_the_account_page(cast: Cast) -> None:
    fields = {"username": "member", "password": PASSWORD}
    assert Client().post("/admin/login/", fields)["Location"] == YOU
    aims = ("//evil.example/", "https://evil.example/", "javascript:x")
    for aim in aims:
        assert Client().post(f"/admin/login/?next={aim}", fields)["Location"] == YOU
