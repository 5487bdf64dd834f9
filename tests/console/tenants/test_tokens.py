from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.identity.models import Token
from mcphost.identity.selectors import authenticate
from mcphost.identity.service_accounts import create, disable
from mcphost.identity.services import FOR_ONESELF
from mcphost.tenants.roles import Audience
from tests.cast import Cast
from tests.console.tenant_data import ACTOR, Things

TOKENS = "/admin/t/acme/tokens/"
NEW = f"{TOKENS}new/"

pytestmark = pytest.mark.django_db


def form(cast: Cast, **changes: Any) -> dict[str, Any]:
    return {
        "name": "laptop",
        "owner": str(cast.owner.user.pk),
        "audience": "mcp",
        "scopes": ["mcp:list", "mcp:call"],
        "expires_at": "30",
        **changes,
    }


def test_a_new_token_is_shown_once_with_client_snippets(owner: Client, cast: Cast) -> None:
    response = owner.post(NEW, form(cast))
    issued = response.context["token"]
    page = response.content.decode()
    assert page.count(issued.plaintext) >= 5
    for client in ("Claude Code", "VS Code", "Cursor", "Python"):
        assert client in page
    assert "no-store" in response["Cache-Control"]
    for path in (TOKENS, NEW, "/admin/t/acme/audit-log/"):
        assert issued.plaintext not in owner.get(path).content.decode()
    assert issued.plaintext not in str(list(Entry.objects.values()))


def test_a_token_has_the_selected_scopes_limits_and_expiry(owner: Client, cast: Cast) -> None:
    fields = form(cast, calls_per_minute="5", concurrent_calls="2")
    issued = owner.post(NEW, fields).context["token"]
    found = authenticate(issued.plaintext, Audience.MCP, "acme")
    assert found.principal.scopes == {"mcp:list", "mcp:call"}
    assert (found.calls_per_minute, found.concurrent_calls) == (5, 2)
    assert found.expires_at is not None
    assert abs(found.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)


def test_an_api_token_has_only_api_scopes(owner: Client, cast: Cast) -> None:
    fields = form(cast, audience="api", scopes=["mcp:list", "api:read"], expires_at="")
    response = owner.post(NEW, fields)
    assert response.context["token"].scopes == ("api:read",)
    (snippet,) = response.context["snippets"]
    assert snippet.text.endswith("http://testserver/api/v1/tenants/acme")
    assert Token.objects.get(pk=response.context["token"].id).expires_at is None


def test_an_owner_cannot_issue_a_token_for_another_user(owner: Client, cast: Cast) -> None:
    before = Token.objects.count()
    for person in (cast.member, cast.stranger):
        response = owner.post(NEW, form(cast, owner=str(person.user.pk)))
        assert response.context["form"].errors == {"owner": [FOR_ONESELF]}
        choices = dict(response.context["form"].fields["owner"].choices)
        assert choices == {str(cast.owner.user.pk): "you (owner, owner)"}
    assert Token.objects.count() == before


def test_staff_without_a_role_issue_tokens_for_service_accounts_only(staff: Client, cast: Cast):
    assert "service account first" in staff.post(NEW, form(cast)).content.decode()
    account = create(cast.acme.id, "nightly", actor=ACTOR)
    refused = staff.post(NEW, form(cast, owner=str(cast.staff.user.pk)))
    assert refused.context["form"].errors == {"owner": [FOR_ONESELF]}
    issued = staff.post(NEW, form(cast, owner=str(account))).context["token"]
    found = authenticate(issued.plaintext, Audience.MCP, "acme")
    assert found.principal.label == "service account nightly (“laptop”, issued by staff)"


def test_a_revoked_token_is_listed_as_revoked(owner: Client, acme: Things) -> None:
    path = f"{TOKENS}{acme.token}/revoke/"
    assert owner.get(TOKENS).content.decode().count("without consent") == 1
    assert "will stop working immediately" in owner.get(path).content.decode()
    back = f"{TOKENS}?at={acme.token}&changed={acme.token}#token-{acme.token}"
    assert owner.post(path)["Location"] == back
    assert Token.objects.get(pk=acme.token).revoked_at is not None
    states = {token.id: state for token, state in owner.get(TOKENS).context["tokens"]}
    assert states[acme.token] == "revoked"


def names(client: Client, query: str = "") -> list[str]:
    return [token.name for token, _ in client.get(f"{TOKENS}{query}").context["tokens"]]


def test_tokens_are_filtered_by_state_and_owner_and_the_revoked_ones_are_last(
    owner: Client, cast: Cast, acme: Things
) -> None:
    account = create(cast.acme.id, "nightly", actor=ACTOR)
    for name, user in (("first", str(account)), ("second", str(cast.owner.user.pk))):
        owner.post(NEW, form(cast, name=name, owner=user))
    first = Token.objects.get(name="first")
    every = names(owner)
    assert every[:2] == ["second", "first"]
    owner.post(f"{TOKENS}{first.pk}/revoke/")
    assert names(owner) == [*(name for name in every if name != "first"), "first"]
    assert names(owner, "?state=revoked") == ["first"]
    assert names(owner, "?owner=night") == ["first"]
    assert names(owner, "?owner=night&state=live") == []
    assert "first" not in names(owner, "?state=live")
    assert "first" in names(owner, f"?state=live&changed={first.pk}")
    Token.objects.filter(name="second").update(expires_at=timezone.now())
    assert names(owner, "?state=expired") == ["second"]
    disable(cast.acme.id, account, actor=ACTOR)
    other = owner.post(NEW, form(cast, name="third")).context["token"]
    Token.objects.filter(pk=other.id).update(owner=None, membership=None, service_account=account)
    assert names(owner, "?state=disabled") == ["third"]
    Token.objects.filter(pk=other.id).update(owner=cast.owner.user, service_account=None)
    assert names(owner, "?state=orphaned") == ["third"]
    for token, state in owner.get(TOKENS).context["tokens"]:
        assert token.name in names(owner, f"?state={state}")
    assert "has no value “x”" in owner.get(f"{TOKENS}?state=x").content.decode()
    assert "No matching tokens" in owner.get(f"{TOKENS}?owner=nobody").content.decode()


def test_pages_of_tokens_have_the_revoked_ones_last(
    owner: Client, cast: Cast, acme: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcphost.identity.selectors.TOKENS_PER_PAGE", 1)
    every, query = [], ""
    owner.post(NEW, form(cast, name="newest"))
    newest = Token.objects.get(name="newest")
    owner.post(f"{TOKENS}{newest.pk}/revoke/")
    while True:
        page = owner.get(f"{TOKENS}?{query}").context
        every += [token.name for token, _ in page["tokens"]]
        if not page["older"]:
            break
        query = page["older"]
    assert every[-1] == "newest"
    assert (
        len(every)
        == len(set(every))
        == Token.objects.filter(tenant=cast.acme.id, connection=None).count()
    )
    before = owner.get(f"{TOKENS}?{page['newer']}").context
    assert [token.name for token, _ in before["tokens"]] == [every[-2]]
    at = owner.get(f"{TOKENS}?at={newest.pk}").context
    assert [token.name for token, _ in at["tokens"]] == ["newest"]


@pytest.mark.parametrize("state", ["", "live"])
def test_no_token_is_left_out_when_the_last_of_a_page_is_revoked_meanwhile(
    owner: Client, cast: Cast, acme: Things, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr("mcphost.identity.selectors.TOKENS_PER_PAGE", 2)
    for number in range(5):
        owner.post(NEW, form(cast, name=f"token {number}"))
    first = owner.get(f"{TOKENS}?state={state}").context
    anchor = first["tokens"][-1][0].id
    owner.post(f"{TOKENS}{anchor}/revoke/")
    listed, query = {token.id for token, _ in first["tokens"]}, first["older"]
    while query:
        page = owner.get(f"{TOKENS}?{query}").context
        assert page["problem"] == ""
        listed |= {token.id for token, _ in page["tokens"]}
        query = page["older"]
    working = Token.objects.filter(tenant=cast.acme.id, connection=None, revoked_at=None)
    working = working.exclude(expires_at__lte=timezone.now())
    assert listed >= {token.pk for token in working}


def test_owners_renew_tokens_of_service_accounts_and_no_other_users(owner, cast, acme):
    account = create(cast.acme.id, "nightly", actor=ACTOR)
    first = owner.post(NEW, form(cast, owner=str(account))).context["token"]
    assert f"{TOKENS}{first.id}/renew/" in owner.get(TOKENS).content.decode()
    renewed = owner.post(f"{TOKENS}{first.id}/renew/", {"expires_at": ""}).context["token"]
    row = Token.objects.get(pk=renewed.id)
    assert (row.line, row.service_account_id) == (first.id, account)
    owner.post(f"{TOKENS}{renewed.id}/revoke/", {"stolen": "on"})
    assert Token.objects.get(pk=first.id).revoked_at is not None
    foreign = cast.member.mcp_token.split("_")[1]
    assert f"{TOKENS}{foreign}/renew/" not in owner.get(TOKENS).content.decode()
    for send in (owner.get, owner.post):
        assert send(f"{TOKENS}{foreign}/renew/").status_code == 404


def test_the_owner_of_a_token_is_named_by_its_type_and_its_name(owner, cast, acme):
    account = create(cast.acme.id, "nightly", actor=ACTOR)
    for user, name in (
        (account, "the service account <code>nightly</code>"),
        (cast.owner.user.pk, "<code>owner</code>"),
    ):
        token = owner.post(NEW, form(cast, owner=str(user))).context["token"]
        revoking = unescape(owner.get(f"{TOKENS}{token.id}/revoke/").content.decode())
        assert f"The token “laptop” of {name} will stop working" in revoking
        renewing = owner.get(f"{TOKENS}{token.id}/renew/").content.decode()
        assert f"You will get a new token of {name}, with the same scopes" in renewing
    listed = owner.get(TOKENS).content.decode()
    assert "service account </span><code>nightly</code></span>" in listed
    assert '<td class="c-nowrap">owner</td>' in listed


CONNECT = "/admin/t/acme/connect/"


def test_a_connect_token_requires_a_name_and_a_role_in_the_tenant(
    operator: Client, staff: Client, acme: Things
):
    before = Token.objects.count()
    assert "c-error" in operator.post(CONNECT, {"name": ""}).content.decode()
    page = staff.post(CONNECT, {"name": "laptop"}).content.decode()
    assert "no client can act as you here" in page
    assert Token.objects.count() == before
