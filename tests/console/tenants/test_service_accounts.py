import pytest
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.identity.models import ServiceAccount
from mcphost.identity.selectors import authenticate
from mcphost.identity.services import FOR_ONESELF
from mcphost.runtime.call import PrincipalKind
from mcphost.tenants.roles import Audience
from tests.cast import Cast
from tests.console.tenants.test_tokens import NEW as NEW_TOKEN
from tests.console.tenants.test_tokens import TOKENS, form

ACCOUNTS = "/admin/t/acme/service-accounts/"

pytestmark = pytest.mark.django_db


def made(owner: Client) -> ServiceAccount:
    owner.post(f"{ACCOUNTS}new/", {"name": "nightly", "description": "runs at night"})
    return ServiceAccount.objects.get(tenant__slug="acme", name="nightly")


def test_an_owner_creates_a_service_account_and_issues_its_token(owner: Client, cast: Cast) -> None:
    assert "No service accounts yet" in owner.get(ACCOUNTS).content.decode()
    account = made(owner)
    page = owner.get(ACCOUNTS).content.decode()
    assert f"{NEW_TOKEN}?owner={account.pk}" in page
    offered = owner.get(f"{NEW_TOKEN}?owner={account.pk}").content.decode()
    assert f'<option value="{account.pk}" selected>service account nightly</option>' in offered
    issued = owner.post(NEW_TOKEN, form(cast, owner=str(account.pk))).context["token"]
    found = authenticate(issued.plaintext, Audience.MCP, "acme")
    assert found.principal.kind is PrincipalKind.SERVICE
    listed = owner.get(TOKENS).content.decode()
    assert "service account nightly" in listed
    assert "without consent" not in listed


def test_a_service_account_cannot_have_an_api_token(owner: Client, cast: Cast) -> None:
    fields = form(cast, owner=str(made(owner).pk), audience="api", scopes=["api:read"])
    errors = owner.post(NEW_TOKEN, fields).context["form"].errors
    assert errors["scopes"] == ["A service account may not hold 'api:read'."]


def test_a_service_account_is_disabled_enabled_and_removed(owner: Client, cast: Cast) -> None:
    account = made(owner)
    path = f"{ACCOUNTS}{account.pk}/"
    asked = owner.get(f"{path}disable/").content.decode()
    assert "as <code>nightly</code> will stop working at once. It was" in asked
    assert "will work again once it is enabled" in asked
    assert not Entry.objects.filter(action="service_account.disabled").exists()
    assert owner.get(f"{path}enable/").status_code == 405
    page = owner.post(f"{path}disable/", follow=True).content.decode()
    assert "its tokens do not work" in page
    assert "is disabled already" in owner.get(f"{path}disable/", follow=True).content.decode()
    errors = owner.post(NEW_TOKEN, form(cast, owner=str(account.pk))).context["form"].errors
    assert errors == {"owner": [FOR_ONESELF]}
    assert "is enabled" in owner.post(f"{path}enable/", follow=True).content.decode()
    page = owner.get(f"{path}remove/").content.decode()
    assert "It has no live tokens. It was never used." in page
    assert "never be used again" in page
    assert "is removed" in owner.post(f"{path}remove/", follow=True).content.decode()
    assert owner.post(f"{path}remove/").status_code == 404
    actions = Entry.objects.filter(action__startswith="service_account.").order_by("id")
    assert [each.action.partition(".")[2] for each in actions] == [
        "created",
        "disabled",
        "enabled",
        "removed",
    ]
