from typing import Any

import pytest
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from mcphost.console import navigation
from mcphost.tenants.models import Tenant

pytestmark = pytest.mark.django_db


def titles(client: Client, path: str = "/admin/") -> dict[str, list[str]]:
    groups = client.get(path).context["menu"].groups
    return {group["title"]: [item["title"] for item in group["items"]] for group in groups}


def test_the_dashboard_shows_the_tenants_and_calls_of_the_user(owner, staff, acme, globex):
    page = owner.get("/admin/")
    assert [card.tenant.slug for card in page.context["cards"]] == ["acme"]
    assert page.context["cards"][0].counts[0].published == 1
    assert "http://testserver/t/acme/mcp" in page.content.decode()
    assert [slug for _, slug in page.context["calls"]] == ["acme"]
    assert "New tenant" not in page.content.decode()
    everything = staff.get("/admin/").context["calls"]
    assert {slug for _, slug in everything} == {"acme", "globex"}


PROGRAMS = ["Overview", "Connect", "Tools", "Prompts", "Resources", "Templates", "Secrets"]
RECORDS = ["Calls", "Questions", "Tasks", "Audit log"]
OF_OPERATORS = [*PROGRAMS, *RECORDS, "Python functions", "Tenant as a file"]
OF_OWNERS = [
    *(
        *PROGRAMS,
        "Tokens",
        "Connected apps",
        "Service accounts",
        *RECORDS,
        "Members",
        "Python functions",
        "Tenant as a file",
    ),
    "Settings",
]


@pytest.mark.parametrize(
    ("who", "pages"), [("owner", OF_OWNERS), ("operator", OF_OPERATORS), ("auditor", OF_OPERATORS)]
)
def test_the_menu_offers_only_permitted_pages(cast, browse, who, pages):
    menu = titles(browse(getattr(cast, who)))
    assert menu == {"": ["Dashboard", "Your access"], "Acme": pages}


def test_the_menu_needs_at_most_five_queries(cast, django_assert_max_num_queries):
    for person in (cast.owner, cast.staff):
        request: Any = RequestFactory().get("/admin/t/acme/")
        request.user = person.user
        request.tenant = Tenant.objects.get(slug="acme")
        with django_assert_max_num_queries(5):
            menu = navigation.menu(request)
        assert sum(len(group["items"]) for group in menu.groups) > 15


def statements(client: Client, path: str) -> list[str]:
    """Return the SQL of a page that is loaded for the second time."""
    assert client.get(path).status_code == 200
    with CaptureQueriesContext(connection) as queries:
        client.get(path)
    return [query["sql"] for query in queries]


def test_pages_read_only_columns_that_they_show(owner, staff, acme, globex):
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
