import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client, RequestFactory

from mcphost.console import navigation
from mcphost.observability import health
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Role
from mcphost.tenants.services import create_tenant, set_member
from tests.cast import Cast
from tests.console.things import ACTOR, Things

pytestmark = pytest.mark.django_db


def titles(client: Client, path: str = "/admin/") -> dict[str, list[str]]:
    groups = client.get(path).context["sidebar_navigation"]
    return {group["title"]: [item["title"] for item in group["items"]] for group in groups}


def test_the_root_leads_to_the_console() -> None:
    assert Client().get("/")["Location"] == "/admin/"


def test_the_dashboard_shows_ones_own_tenants_and_calls(
    owner: Client, acme: Things, globex: Things
) -> None:
    page = owner.get("/admin/")
    assert [card.tenant.slug for card in page.context["cards"]] == ["acme"]
    assert page.context["cards"][0].counts[0].published == 1
    assert "http://testserver/t/acme/mcp" in page.content.decode()
    assert [slug for _, slug in page.context["calls"]] == ["acme"]
    assert "New tenant" not in page.content.decode()


def test_staff_see_every_tenant_and_what_is_wrong_with_the_process(
    staff: Client, acme: Things, globex: Things
) -> None:
    health.register("console-test", lambda: "the disk is full")
    try:
        page = staff.get("/admin/")
    finally:
        health.unregister("console-test")
    assert {slug for _, slug in page.context["calls"]} == {"acme", "globex"}
    assert "the disk is full" in page.content.decode()


def test_a_new_platform_says_what_to_do_first(staff: Client, cast: Cast) -> None:
    Tenant.objects.update(closed_at="2026-01-01T00:00:00Z")
    assert "Create a tenant" in staff.get("/admin/").content.decode()


def test_of_many_tenants_the_dashboard_shows_the_first(staff: Client, cast: Cast) -> None:
    for number in range(12):
        create_tenant(f"many-{number:02}", actor=ACTOR)
    page = staff.get("/admin/")
    assert len(page.context["cards"]) == 12
    assert page.context["more"]


@pytest.mark.parametrize(
    ("who", "pages"),
    [
        (
            "owner",
            [
                "Overview",
                "Tools",
                "Prompts",
                "Resources",
                "Templates",
                "Secrets",
                "Tokens",
                "Service accounts",
                "Records",
                "Tasks",
                "Changes",
                "Members",
                "Functions",
                "Settings",
            ],
        ),
        (
            "operator",
            [
                "Overview",
                "Tools",
                "Prompts",
                "Resources",
                "Templates",
                "Secrets",
                "Records",
                "Tasks",
                "Changes",
                "Functions",
            ],
        ),
        (
            "auditor",
            [
                "Overview",
                "Tools",
                "Prompts",
                "Resources",
                "Templates",
                "Secrets",
                "Records",
                "Tasks",
                "Changes",
                "Functions",
            ],
        ),
    ],
)
def test_the_menu_offers_what_a_person_may_do(
    request: pytest.FixtureRequest, who: str, pages: list[str]
) -> None:
    client: Client = request.getfixturevalue(who)
    assert titles(client) == {"": ["Dashboard", "Your access"], "Acme": pages}


def test_every_page_that_the_menu_offers_opens(
    owner: Client, operator: Client, auditor: Client, staff: Client, acme: Things
) -> None:
    for client in (owner, operator, auditor, staff):
        for group in client.get("/admin/t/acme/").context["sidebar_navigation"]:
            for item in group["items"]:
                assert client.get(item["link"]).status_code == 200, item


def test_staff_switch_between_tenants(staff: Client, cast: Cast) -> None:
    assert titles(staff)["Tenants"] == ["acme", "commons", "globex"]
    here = titles(staff, "/admin/t/acme/tools/")
    assert here["Tenants"] == ["commons", "globex"]
    assert "Tokens" in here["Acme"]


def test_who_has_many_tenants_is_led_to_the_list(owner: Client, cast: Cast) -> None:
    for number in range(navigation.MOST_TENANTS):
        made = create_tenant(f"many-{number}", actor=ACTOR)
        set_member(made.id, cast.owner.user, Role.AUDITOR, actor=ACTOR)
    assert titles(owner)["Tenants"][-1] == "More…"


def test_the_page_one_is_on_is_marked(owner: Client, acme: Things) -> None:
    def active(path: str) -> list[str]:
        groups = owner.get(path).context["sidebar_navigation"]
        return [item["title"] for group in groups for item in group["items"] if item["active"]]

    assert active("/admin/") == ["Dashboard"]
    assert active("/admin/t/acme/") == ["Overview"]
    assert active(f"/admin/t/acme/tools/{acme.tool}/") == ["Tools"]


def test_nobody_has_an_empty_menu() -> None:
    request = RequestFactory().get("/admin/")
    request.user = AnonymousUser()
    assert navigation.groups(request) == []
