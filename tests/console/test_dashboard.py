import asyncio
import os
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from mcphost.console import navigation
from mcphost.kinds.script.kind import script_kind
from mcphost.sandbox.pool import Sandbox
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Role
from mcphost.tenants.services import create_tenant, set_member
from tests.cast import Cast
from tests.console.things import ACTOR, Things

pytestmark = pytest.mark.django_db


def titles(client: Client, path: str = "/admin/") -> dict[str, list[str]]:
    groups = client.get(path).context["menu"].groups
    return {group["title"]: [item["title"] for item in group["items"]] for group in groups}


def test_the_root_leads_to_the_console() -> None:
    assert Client().get("/")["Location"] == "/admin/"


def test_the_dashboard_shows_ones_own_tenants_and_calls(owner, staff, acme, globex):
    page = owner.get("/admin/")
    assert [card.tenant.slug for card in page.context["cards"]] == ["acme"]
    assert page.context["cards"][0].counts[0].published == 1
    assert "http://testserver/t/acme/mcp" in page.content.decode()
    assert [slug for _, slug in page.context["calls"]] == ["acme"]
    assert "New tenant" not in page.content.decode()
    everything = staff.get("/admin/").context["calls"]
    assert {slug for _, slug in everything} == {"acme", "globex"}


def test_of_many_tenants_the_dashboard_shows_the_first(staff: Client, cast: Cast) -> None:
    for number in range(12):
        create_tenant(f"many-{number:02}", actor=ACTOR)
    page = staff.get("/admin/")
    assert len(page.context["cards"]) == 12
    assert page.context["more"]
    Tenant.objects.update(closed_at="2026-01-01T00:00:00Z")
    assert "Create a tenant" in staff.get("/admin/").content.decode()


PROGRAMS = ["Overview", "Connect", "Tools", "Prompts", "Resources", "Templates", "Secrets"]
RECORDS = ["Calls", "Input requests", "Tasks", "Audit log"]
OF_OPERATORS = [*PROGRAMS, *RECORDS, "Python functions"]
OF_OWNERS = [
    *(*PROGRAMS, "Tokens", "Service accounts", *RECORDS, "Members", "Python functions"),
    "Settings",
]


@pytest.mark.parametrize(
    ("who", "pages"), [("owner", OF_OWNERS), ("operator", OF_OPERATORS), ("auditor", OF_OPERATORS)]
)
def test_the_menu_offers_what_a_person_may_do(cast, browse, who, pages):
    menu = titles(browse(getattr(cast, who)))
    assert menu == {"": ["Dashboard", "Your access"], "Acme": pages}


def test_the_menu_offers_staff_the_pages_of_the_platform(staff: Client, cast: Cast) -> None:
    titles_of_platform = {title for pages in titles(staff).values() for title in pages}
    assert {"Keys", "Status", "Users"} <= titles_of_platform


def test_the_menu_costs_few_queries_however_long_it_is(cast, django_assert_max_num_queries):
    for person in (cast.owner, cast.staff):
        request: Any = RequestFactory().get("/admin/t/acme/")
        request.user = person.user
        request.tenant = Tenant.objects.get(slug="acme")
        with django_assert_max_num_queries(5):
            menu = navigation.menu(request)
        assert sum(len(group["items"]) for group in menu.groups) > 15


def test_who_has_several_tenants_switches_between_them(staff: Client, owner: Client, cast: Cast):
    for path in ("/admin/", "/admin/t/acme/tools/"):
        page = staff.get(path)
        assert [each.slug for each in page.context["menu"].tenants] == ["acme", "commons", "globex"]
        text = page.content.decode()
        assert 'popovertarget="tenant-menu"' in text
        assert '<a href="/admin/t/globex/">' in text
    assert '<a href="/admin/t/acme/" aria-current="true">' in text
    assert "Tokens" in titles(staff, "/admin/t/acme/tools/")["Acme"]
    assert "tenant-menu" not in owner.get("/admin/").content.decode()


def test_many_tenants_are_searched_and_led_to_the_list(owner: Client, cast: Cast) -> None:
    def make(numbers: range) -> str:
        for number in numbers:
            made = create_tenant(f"many-{number}", actor=ACTOR)
            set_member(made.id, cast.owner.user, Role.AUDITOR, actor=ACTOR)
        return owner.get("/admin/").content.decode()

    assert "data-filter" not in make(range(navigation.SEARCHED - 2))
    assert "data-filter" in (text := make(range(50, 51)))
    assert "All tenants…" not in text
    assert "All tenants…" in make(range(100, 100 + navigation.MOST_TENANTS))


def test_the_page_one_is_on_is_marked(owner: Client, acme: Things) -> None:
    def active(path: str) -> list[str]:
        groups = owner.get(path).context["menu"].groups
        return [item["title"] for group in groups for item in group["items"] if item["active"]]

    assert active("/admin/") == ["Dashboard"]
    assert active("/admin/t/acme/") == ["Overview"]
    assert active(f"/admin/t/acme/tools/{acme.tool}/") == ["Tools"]


def test_nobody_has_an_empty_menu() -> None:
    request = RequestFactory().get("/admin/")
    request.user = AnonymousUser()
    assert navigation.menu(request).groups == ()


def test_staff_see_how_the_sandbox_is_confined(staff, owner, acme, monkeypatch):
    title = "Sandbox of scripts in this process"
    assert title not in owner.get("/admin/").content.decode()
    sandbox = Sandbox(2)
    monkeypatch.setattr(script_kind, "sandbox", sandbox)
    page = staff.get("/admin/").content.decode()
    assert title in page and "Known once a worker has started" in page
    try:
        assert asyncio.run(sandbox.search("acme", "a", {"a": 1})) == 1
        page = staff.get("/admin/").content.decode()
        own = "Each worker has its own" if os.geteuid() == 0 else "only root may give"
        assert own in page and "768.0" in page and "1000 jobs" in page
    finally:
        sandbox.close()


def statements(client: Client, path: str) -> list[str]:
    """Return the SQL of a page that is loaded for the second time."""
    assert client.get(path).status_code == 200
    with CaptureQueriesContext(connection) as queries:
        client.get(path)
    return [query["sql"] for query in queries]


def test_pages_read_of_the_database_only_what_they_show(owner, staff, acme, globex):
    tenant = "/admin/t/acme/"
    naming = ("", "calls/", "tasks/", "tokens/new/", "first-steps/")
    for path in ("/admin/", *(f"{tenant}{page}" for page in naming)):
        read = statements(owner, path)
        assert not [sql for sql in read if '"catalogue_primitive"."config"' in sql], path
    tenants = [sql for sql in statements(staff, "/admin/keys/") if 'FROM "tenants_tenant"' in sql]
    assert tenants
    assert not [sql for sql in tenants if '"icon"' in sql or '"instructions"' in sql]
    read = statements(owner, f"{tenant}tokens/{acme.token}/revoke/")
    tokens = [sql for sql in read if 'FROM "identity_token"' in sql]
    assert tokens
    assert all(acme.token in sql for sql in tokens)
