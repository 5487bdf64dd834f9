import re
from dataclasses import replace

import pytest
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Role
from mcphost.tenants.services import set_member, update_tenant
from tests.cast import Cast
from tests.console.tenant_data import ACTOR

SETTINGS = "/admin/t/acme/settings/"

pytestmark = pytest.mark.django_db


def test_staff_create_a_tenant_and_are_redirected_to_its_members(staff: Client) -> None:
    response = staff.post("/admin/tenants/new/", {"slug": "initech", "title": ""})
    assert response["Location"] == "/admin/t/initech/members/"
    assert Tenant.objects.get(slug="initech").title == "initech"
    made = Entry.objects.get(action="tenant.created", target="initech")
    assert (made.actor_kind, made.actor_label) == ("person", "staff")


@pytest.mark.parametrize(
    ("slug", "said"), [("Not A Slug", "lower-case"), ("acme", "This slug is taken.")]
)
def test_an_invalid_slug_is_refused_at_its_field(staff: Client, cast: Cast, slug: str, said: str):
    response = staff.post("/admin/tenants/new/", {"slug": slug})
    assert said in response.context["form"].errors["slug"][0]
    assert said in response.content.decode()


def test_an_owner_edits_the_permitted_settings_only(owner: Client) -> None:
    fields = {
        "title": "Acme Corp",
        "instructions": "one\r\ntwo",
        "allowed_origins": "https://app.example\r\nhttps://other.example:8443",
        "public": "on",
        "metadata_documents_only": "on",
        "calls_per_minute": "60",
        "concurrent_calls": "",
        "outgoing_hosts": "api.example.com\nhttp://127.0.0.1:9000",
        "slug": "elsewhere",
    }
    assert owner.post(SETTINGS, fields)["Location"] == SETTINGS
    row = Tenant.objects.get(slug="acme")
    assert (row.title, row.instructions, row.public) == ("Acme Corp", "one\ntwo", True)
    assert row.metadata_documents_only is True
    assert row.allowed_origins == ["https://app.example", "https://other.example:8443"]
    assert (row.calls_per_minute, row.concurrent_calls) == (60, None)
    assert row.outgoing_hosts == fields["outgoing_hosts"].split()
    page = owner.get(SETTINGS)
    assert fields["outgoing_hosts"] in page.content.decode()
    form = page.context["form"]
    assert form.initial["metadata_documents_only"] is True
    names = form.fields.keys() - {"remove_icon"}
    assert [name for name in names if f'data-field="{name}"' not in page.content.decode()] == []
    assert form.initial["allowed_origins"] == "\n".join(row.allowed_origins)


def test_saving_settings_does_not_undo_a_concurrent_change(owner: Client, cast: Cast):
    opened = replace(cast.acme.fields, public=True, outgoing_hosts=("evil.example",))
    update_tenant(cast.acme.id, opened, actor=ACTOR)
    based_on = owner.get(SETTINGS).context["based_on"]
    update_tenant(cast.acme.id, cast.acme.fields, actor=ACTOR)
    before = Entry.objects.count()
    fields = {"title": "Renamed", "public": "on", "outgoing_hosts": "evil.example"}
    refused = owner.post(SETTINGS, {**fields, "based_on": based_on})
    page = refused.content.decode()
    assert "acme was changed meanwhile by another user" in page
    assert 'id="conflict"' in page
    assert [(each.label, each.before, each.after) for each in refused.context["conflict"]] == [
        ("Title", "Acme", "Renamed"),
        ("Hosts that tools may call", (), ("evil.example",)),
        ("Public", False, True),
    ]
    row = Tenant.objects.get(slug="acme")
    assert (row.title, row.public, row.outgoing_hosts) == ("Acme", False, [])
    assert Entry.objects.count() == before
    again = {"title": "Renamed", "based_on": refused.context["based_on"]}
    assert owner.post(SETTINGS, again)["Location"] == SETTINGS
    row.refresh_from_db()
    assert (row.title, row.public, row.outgoing_hosts) == ("Renamed", False, [])


def test_submitting_settings_twice_is_no_conflict(owner: Client) -> None:
    based_on = owner.get(SETTINGS).context["based_on"]
    for _ in range(2):
        fields = {"title": "Twice", "instructions": "a\r\nb", "based_on": based_on}
        assert owner.post(SETTINGS, fields)["Location"] == SETTINGS
    assert Entry.objects.filter(action="tenant.updated").count() == 1


def test_closing_a_tenant_requires_its_slug_and_keeps_its_history(owner: Client) -> None:
    refused = owner.post("/admin/t/acme/close/", {"slug": "acm"})
    assert "not the tenant" in refused.context["form"].errors["slug"][0]
    assert Tenant.objects.get(slug="acme").closed_at is None
    assert owner.post("/admin/t/acme/close/", {"slug": "acme"})["Location"] == "/admin/t/acme/"
    assert Tenant.objects.get(slug="acme").closed_at is not None
    page = owner.get("/admin/t/acme/").content.decode()
    assert "its calls and audit log can still be read" in page
    assert "New tool" not in page
    assert owner.get("/admin/t/acme/calls/").status_code == 200
    for path in ("settings/", "tools/new/", "members/", "tokens/"):
        assert owner.get(f"/admin/t/acme/{path}").status_code == 403


def test_the_page_that_closes_a_tenant_says_what_ends_and_what_stays(owner: Client) -> None:
    page = owner.get("/admin/t/acme/close/").content.decode()
    assert "<h1>Close the tenant “Acme”</h1>" in page
    assert "http://testserver/t/acme/mcp</code> will stop answering at once" in page
    assert re.search(r"<li>\d+ live tokens will stop working\.</li>", page)
    assert "from their clients" not in page
    assert "Platform staff will still be able to read its calls and audit log" in page


def test_the_page_that_closes_a_tenant_says_if_nothing_else_is_affected(staff: Client) -> None:
    page = staff.get("/admin/t/commons/close/").content.decode()
    assert (
        "The tenant has no live tokens, connected apps, waiting calls, open sessions or tasks."
        in page
    )


@pytest.mark.parametrize("leaves", [True, False])
def test_the_last_owner_cannot_leave_or_be_removed_and_sees_no_button(
    owner: Client, staff: Client, cast: Cast, leaves: bool
) -> None:
    def shown() -> str:
        if leaves:
            return owner.get("/admin/you/t/acme/leave/").content.decode()
        return staff.get(f"/admin/t/acme/members/{cast.owner.user.pk}/remove/").content.decode()

    page = shown()
    assert "cannot leave “Acme” yet</h1>" in page or "cannot be removed yet</h1>" in page
    members = '<a href="/admin/t/acme/members/">the members of Acme</a>'
    assert f"First make another of {members} an owner, or invite one.</p>" in page
    assert "c-danger" not in page
    set_member(cast.acme.id, cast.operator.user, Role.OWNER, actor=ACTOR)
    assert "c-danger" in shown()


def test_the_paged_tenant_list_shows_only_tenants_that_the_user_may_see(
    cast, owner, staff, monkeypatch
):
    def slugs(client: Client, query: str = "") -> list[str]:
        return [row.slug for row in client.get(f"/admin/tenants/?{query}").context["tenants"]]

    assert slugs(owner) == ["acme"]
    assert slugs(staff) == ["acme", "commons", "globex"]
    assert slugs(staff, "q=LOB") == ["globex"]
    assert slugs(staff, "after=acme+acme") == ["commons", "globex"]
    assert slugs(staff, "q=none") == []
    monkeypatch.setattr("mcphost.console.tenants.tenants.PER_PAGE", 2)
    first = staff.get("/admin/tenants/")
    assert [row.slug for row in first.context["tenants"]] == ["acme", "commons"]
    last = staff.get(f"/admin/tenants/?{first.context['older']}")
    assert [row.slug for row in last.context["tenants"]] == ["globex"]
    assert last.context["older"] == ""
    assert slugs(staff, last.context["newer"]) == ["acme", "commons"]
    assert slugs(staff, "q=o") == ["commons", "globex"]
    monkeypatch.setattr("mcphost.console.tenants.tenants.PER_PAGE", 1)
    assert staff.get("/admin/tenants/?q=o").context["older"] == "q=o&after=commons+commons"


def test_tenants_are_listed_by_title_on_all_pages(cast: Cast, staff: Client, stranger: Client):
    update_tenant(cast.acme.id, replace(cast.acme.fields, title="zebra"), actor=ACTOR)
    stranger_user = cast.stranger.user
    set_member(cast.acme.id, stranger_user, Role.MEMBER, actor=ACTOR)
    page = staff.get("/admin/tenants/")
    by_title = ["Commons", "Globex", "zebra"]
    assert [row.title for row in page.context["tenants"]] == by_title
    assert [row.title for row in page.context["menu"].tenants] == by_title
    dashboard = staff.get("/admin/")
    assert [card.tenant.title for card in dashboard.context["cards"]] == by_title
    own = stranger.get("/admin/you/").context["roles"]
    assert [role.tenant.title for role, _ in own] == ["Globex", "zebra"]
    of_user = staff.get(f"/admin/users/{stranger_user.pk}/").context["roles"]
    assert [role.tenant.title for role in of_user] == ["Globex", "zebra"]
    listed = staff.get("/admin/users/?q=stranger").context["people"][0]
    assert [role.tenant.title for role in listed.memberships.all()] == ["Globex", "zebra"]


def test_the_overview_of_a_tenant_has_no_link_to_itself_in_its_path(
    owner: Client, staff: Client
) -> None:
    assert owner.get("/admin/t/acme/").context["crumbs"] == []
    above = staff.get("/admin/t/acme/").context["crumbs"]
    assert [(crumb.title, crumb.url) for crumb in above] == [("All tenants", "/admin/tenants/")]
    below = owner.get("/admin/t/acme/tools/").context["crumbs"]
    assert [(crumb.title, crumb.url) for crumb in below] == [("Acme", "/admin/t/acme/")]
