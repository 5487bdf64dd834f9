"""After a change of a row, the user returns to the filtered list at that row."""

import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.catalogue.models import Primitive
from mcphost.identity.models import Token
from mcphost.vault.models import RingKey, StoredSecret
from tests.console.tenant_data import Things

TENANT = "/admin/t/acme/"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def row_at(client: Client, url: str) -> str:
    """The beginning of the row that the URL leads to."""
    parts = urlsplit(url)
    page = client.get(f"{parts.path}?{parts.query}").content.decode()
    found = re.search(rf'<tr id="{re.escape(parts.fragment)}".*?</td>.*?</td>', page, re.DOTALL)
    return found[0] if found else ""


def test_a_bulk_action_returns_to_the_filtered_list_and_shows_the_changed_row(operator, acme):
    tool = Primitive.objects.get(tenant_id=acme.tenant, primitive_type="tool", state="published")
    query = "q=canary&state=published"
    listed = operator.get(f"{TENANT}tools/?{query}").content.decode()
    assert f'name="list" value="{query.replace("&", "&amp;")}"' in listed
    fields = {"verb": "disable", "chosen": str(tool.pk), "list": query, "confirmed": "on"}
    url = operator.post(f"{TENANT}tools/bulk/", fields)["Location"]
    assert url == f"{TENANT}tools/?{query}&changed={tool.pk}#row-{tool.pk}"
    assert tool.name in row_at(operator, url)
    assert "changed%3D" not in operator.get(url).content.decode(), "its links lead to no marked row"
    assert operator.get(f"{TENANT}tools/?{query}").context["rows"] == []


def test_the_page_of_a_tool_links_back_to_its_filtered_list(operator: Client, acme: Things) -> None:
    tool = Primitive.objects.get(tenant_id=acme.tenant, primitive_type="tool", state="published")
    page = operator.get(f"{TENANT}tools/?q=canary").content.decode()
    path = f"{TENANT}tools/{tool.pk}/?list=q%3Dcanary"
    assert f'href="{path}"' in page
    detail = operator.get(path).content.decode()
    assert f'href="{TENANT}tools/?q=canary#row-{tool.pk}"' in detail
    assert f'href="{TENANT}tools/{tool.pk}/disable/?list=q%3Dcanary"' in detail
    url = operator.post(f"{TENANT}tools/{tool.pk}/disable/?list=q%3Dcanary")["Location"]
    assert url == path


def older_tokens(acme: Things, count: int) -> str:
    """Make older tokens, each a day older than the one before. Returns the id of the newest."""
    first = (
        Token.objects.filter(tenant_id=acme.tenant, connection=None).order_by("-created_at").first()
    )
    newest = first.pk
    for number in range(count):
        first.pk = f"older{number:03}"
        first.digest = f"{number:032}".encode()
        first.save(force_insert=True)
        at = timezone.now() - timedelta(days=number + 1)
        Token.objects.filter(pk=first.pk).update(created_at=at)
    return newest


def test_revoking_a_token_returns_to_the_page_of_the_list_with_that_token(
    owner: Client, acme: Things
) -> None:
    older_tokens(acme, 60)
    newest = owner.get(f"{TENANT}tokens/")
    oldest = owner.get(f"{TENANT}tokens/?{newest.context['older']}")
    assert oldest.context["older"] == ""
    back = owner.get(f"{TENANT}tokens/?{oldest.context['newer']}")
    assert (back.context["tokens"], back.context["newer"]) == (newest.context["tokens"], "")
    shown = [token.id for page in (newest, oldest) for token, _ in page.context["tokens"]]
    assert shown == sorted(shown, key=lambda id: -1 if id[:5] != "older" else int(id[5:]))
    assert len(shown) == Token.objects.filter(tenant_id=acme.tenant, connection=None).count()
    token = shown[-1]
    links = re.findall(rf'href="([^"]+{token}/revoke/[^"]*)"', oldest.content.decode())
    url = owner.post(links[0].replace("&amp;", "&"))["Location"]
    assert url.endswith(f"?{newest.context['older']}&changed={token}#token-{token}")
    assert "revoked" in row_at(owner, url)


def test_changing_secrets_members_accounts_and_keys_returns_to_their_row(owner, staff, cast, acme):
    secret = StoredSecret.objects.filter(tenant=acme.tenant).first()
    path = f"{TENANT}secrets/{secret.pk}/rotate/"
    assert secret.name in row_at(owner, owner.post(path, {"value": "a new value"})["Location"])
    member = cast.operator.user
    path = f"{TENANT}members/{member.pk}/role/"
    url = owner.post(path, {"role": "member"})["Location"]
    assert member.username in row_at(owner, url)
    owner.post(f"{TENANT}service-accounts/new/", {"name": "nightly", "description": ""})
    page = owner.get(f"{TENANT}service-accounts/")
    account = next(each for each in page.context["accounts"] if each.name == "nightly")
    url = owner.post(f"{TENANT}service-accounts/{account.id}/disable/")["Location"]
    assert "nightly" in row_at(owner, url)
    url = staff.post("/admin/keys/rotate/")["Location"]
    key = RingKey.objects.exclude(state="active").latest("created_at")
    assert url == f"/admin/keys/#key-{key.pk}"
    assert key.pk in row_at(staff, url)


def test_the_list_parameter_of_a_link_cannot_redirect_elsewhere(
    operator: Client, acme: Things
) -> None:
    tool = Primitive.objects.get(tenant_id=acme.tenant, primitive_type="tool", state="published")
    fields = {
        "verb": "disable",
        "confirmed": "on",
        "chosen": str(tool.pk),
        "list": "//evil.example/?x=\r\nSet-Cookie:1",
    }
    url = operator.post(f"{TENANT}tools/bulk/", fields)["Location"]
    assert urlsplit(url).path == f"{TENANT}tools/"
    assert not urlsplit(url).netloc


def test_a_url_with_too_many_fields_is_refused(operator: Client, acme: Things) -> None:
    for path in ("/admin/", f"{TENANT}tools/", "/admin/login/"):
        for client in (operator, Client()):
            assert client.get(f"{path}?{'&' * 1001}").status_code in {400, 302}, path
    shown = operator.get(f"{TENANT}tools/?{'&' * 1001}")
    assert "A form or an address may have 1,000 fields" in shown.content.decode()
