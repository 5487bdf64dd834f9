"""Tests of what all pages share: headers, wording, examples, snippets to paste."""

import re

import pytest
from django.conf import settings
from django.test import Client

from mcphost.console.middleware import FRAMING, STRICT
from tests.console.tenant_data import Things

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "script-src 'self'; style-src 'self'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@pytest.mark.django_db
def test_every_page_has_the_security_headers_and_a_csp_without_external_sources() -> None:
    inside, outside = Client().get("/admin/login/"), Client().get("/nowhere")
    assert (inside.status_code, outside.status_code) == (200, 404)
    for page in (inside, outside):
        assert {name: page[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


LOOSER_PAGES: dict[str, str] = {}
"""Pages whose policy is not strict, each with its reason: there are none."""
_FORBIDDEN = re.compile(
    r"""<style(?!\ nonce=)|\sstyle=|\son(?!e=)[a-z]+=|javascript:|x-data|x-on:|hx-|<script(?![^>]*\ssrc=)|unsafe-""",
    re.IGNORECASE,
)


def test_no_template_needs_a_looser_csp() -> None:
    folder = settings.BASE / "templates"
    texts = {path.name: path.read_text() for path in folder.rglob("*.html")}
    assert len(texts) > 80
    wrong = {name: _FORBIDDEN.findall(text) for name, text in texts.items()}
    assert {name: found for name, found in wrong.items() if found} == LOOSER_PAGES


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "status"),
    [("/admin/users/", 403), ("/admin/t/nowhere/tools/", 403), ("/admin/nowhere/", 404)],
)
def test_error_pages_of_the_console_have_its_menu_and_links(owner: Client, path: str, status: int):
    page = owner.get(path)
    assert page.status_code == status
    text = page.content.decode()
    for part in ('id="nav-sidebar"', "Where to go from here", 'href="/admin/you/"'):
        assert part in text
    assert "nowhere" not in text


def test_style_elements_need_a_nonce_beside_the_editor(acme: Things, owner: Client) -> None:
    """The script editor makes some; the page itself has none."""
    assert owner.get("/admin/t/acme/")["Content-Security-Policy"] == STRICT
    pages = [owner.get("/admin/t/acme/tools/new/?kind=script") for _ in range(2)]
    policies = [page["Content-Security-Policy"] for page in pages]
    nonces = [re.search(r"'nonce-([\w-]{22})'", policy) for policy in policies]
    for page, policy, nonce in zip(pages, policies, nonces, strict=True):
        assert policy == f"{STRICT} 'nonce-{nonce[1]}'{FRAMING}"
        text = page.content.decode()
        assert f'data-nonce="{nonce[1]}"' in text
        assert "<style" not in text
    assert policies[0] != policies[1]


@pytest.mark.django_db
def test_a_refused_form_leads_back_to_the_page_that_sent_it_and_to_no_other_server() -> None:
    browser, path = Client(enforce_csrf_checks=True), "/admin/login/"
    for sender, is_led in (
        ("http://testserver/admin/login/?next=/admin/", True),
        ("http://elsewhere.example/admin/login/", False),
    ):
        page = browser.post(path, headers={"referer": sender})
        assert page.status_code == 403
        text = page.content.decode()
        assert (f'href="{sender}"' in text) is is_led
        assert ("Open the form again" in text) is is_led


@pytest.mark.django_db
def test_a_refused_page_keeps_the_menu_of_a_tenant_that_the_user_may_see(
    auditor: Client, stranger: Client, acme: Things
) -> None:
    refused, foreign = (each.get("/admin/t/acme/settings/") for each in (auditor, stranger))
    assert refused.status_code == foreign.status_code == 403
    assert refused.context["menu"].here == refused.context["tenant"]
    assert refused.context["tenant"].pk == acme.tenant
    assert foreign.context["tenant"] is None
    assert "for a role that includes it" in refused.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("/admin/t/acme/payloads/{entry}/erase/", "/admin/t/acme/calls/"),
        ("/admin/t/acme/close/", "/admin/t/acme/settings/"),
        ("/admin/t/acme/refusals/", "/admin/t/acme/calls/"),
        ("/admin/password/", "/admin/you/"),
    ],
)
def test_a_page_without_an_item_of_its_own_highlights_the_one_that_leads_to_it(
    owner: Client, acme: Things, path: str, item: str
) -> None:
    menu = owner.get(path.format(entry=acme.entry)).context["menu"]
    active = [each["link"] for group in menu.groups for each in group["items"] if each["active"]]
    assert active == [item]
