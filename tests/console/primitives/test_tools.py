import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import mcphost
from mcphost.catalogue import kinds, selectors, services
from mcphost.catalogue.models import Primitive, PrimitiveVersion
from mcphost.kinds.primitive_types import PrimitiveType
from tests.console.tenant_data import ACTOR, Things

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"
OURS = str(Path(mcphost.__file__).parent)

pytestmark = pytest.mark.django_db


def form(**changes: Any) -> dict[str, Any]:
    return {"function": "probe.echo", "name": "say", "title": "", "description": "", **changes}


def row(name: str) -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name=name)


def served(things: Things) -> list[str]:
    return [tool.name for tool in selectors.offering(things.tenant).tools]


@pytest.mark.parametrize(
    ("address", "titles"),
    [
        (
            "tools/new/?kind=http",
            "Name Request Arguments Questions Preview Response Attempts Hints Access Version Trial",
        ),
        ("tools/new/?kind=script", "Name Script Hints Access Version Trial"),
        ("tools/new/?kind=python", "Function Name Access Version Trial"),
        ("prompts/new/?kind=text", "Name Arguments Messages Access Version"),
        ("prompts/new/?kind=python", "Function Name Access Version"),
        ("resources/new/?kind=text", "Name Content Access Version"),
        ("templates/new/?kind=text", "Name Content Access Version"),
    ],
)
def test_each_form_has_links_to_its_sections(operator, acme, address, titles):
    page = operator.get(f"/admin/t/acme/{address}").content.decode()
    strip = page.partition('<nav class="c-sections"')[2].partition("</nav>")[0]
    links = re.findall(r'<a href="#([^"]+)"[^>]*>([^<]+)</a>', strip)
    assert [title for _, title in links] == titles.split()
    places = [page.index(f' id="{anchor}"') for anchor, _ in links]
    assert places == sorted(places)
    assert all(page.count(f' id="{anchor}"') == 1 for anchor, _ in links)


def test_a_tool_is_saved_as_a_draft_or_published_at_once(operator, acme):
    response = operator.post(NEW, form(scopes="mcp:a, mcp:b", time_limit_seconds="2.5"))
    tool = row("say")
    assert response["Location"] == f"{TOOLS}{tool.id}/"
    assert (tool.state, tool.scopes, tool.time_limit_seconds) == ("draft", ["mcp:a", "mcp:b"], 2.5)
    assert "Never published" in operator.get(response["Location"]).content.decode()
    operator.post(f"{TOOLS}{tool.id}/publish/")
    assert "say" in served(acme)
    assert row("say").live is not None
    operator.post(NEW, form(name="other", _publish=""))
    assert "other" in served(acme)
    page = operator.get(f"{TOOLS}{row('other').id}/")
    assert "other is published" in page.content.decode()
    assert page.context["offer"].argument_limit is None
    assert "expensive to check" not in page.content.decode()
    assert PrimitiveVersion.objects.get(primitive=row("other")).published_by == "operator"


def test_only_functions_granted_to_the_tenant_are_offered(operator, acme, globex):
    services.grant_function(globex.tenant, "probe.write", ACTOR)
    page = operator.get(NEW)
    assert [value for value, _ in page.context["form"].part.fields["function"].choices] == [
        "",
        "probe.echo",
    ]
    assert list(page.context["authors"]) == ["probe.echo"]
    response = operator.post(NEW, form(function="probe.write"))
    assert list(response.context["form"].part.errors) == ["function"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "no blanks please"}, "name"),
        ({"name": "canary-acme-tool"}, "name"),
        ({"title": "a\x07b"}, "title"),
        ({"scopes": "nonsense"}, "scopes"),
        ({"time_limit_seconds": "-1"}, "time_limit_seconds"),
        ({"answer_within_seconds": "86401"}, "answer_within_seconds"),
    ],
)
def test_invalid_fields_of_a_tool_are_reported_and_nothing_is_saved(operator, acme, changes, field):
    response = operator.post(NEW, form(**changes, _publish=""))
    assert list(response.context["form"].errors) == [field]
    assert response.context["form"].errors[field][0] in response.context["form"].as_p().replace(
        "&#x27;", "'"
    ).replace("&quot;", '"')
    assert Primitive.objects.filter(tenant__slug="acme", primitive_type="tool").count() == 1


def test_an_edit_changes_the_working_copy_and_the_page_shows_the_differences(operator, acme):
    path = f"{TOOLS}{acme.tool}/"
    assert operator.get(f"{path}edit/").context["form"].initial["name"] == "canary-acme-tool"
    fields = form(name="canary-acme-tool", title="Another", scopes="mcp:x")
    assert operator.post(f"{path}edit/", fields)["Location"] == path
    page = operator.get(path)
    differences = [
        (each.label, each.before, each.after) for each in page.context["offer"].differences
    ]
    assert differences == [("Title", "", "Another"), ("Scopes", [], ["mcp:x"])]
    assert "Unpublished changes" in page.content.decode()
    assert page.context["offer"].to_publish
    operator.post(f"{path}edit/", {**fields, "_publish": ""})
    page = operator.get(path)
    assert page.context["offer"].differences == []
    assert [version.number for version in page.context["offer"].versions] == [2, 1]
    assert not page.context["offer"].to_publish
    renamed = operator.post(f"{path}edit/", form(name="other"))
    assert "cannot be changed" in renamed.context["form"].errors["name"][0]


def test_a_disabled_tool_is_not_served_until_it_is_enabled(operator, acme):
    path = f"{TOOLS}{acme.tool}/"
    assert "/enable/" not in operator.get(path).content.decode()
    assert operator.post(f"{path}disable/")["Location"] == path
    assert served(acme) == []
    page = operator.get(path).content.decode()
    assert "is disabled" in page
    assert "not served</span>" in page
    assert ">published<" not in page
    assert "As clients would see it" in page
    for said in ("canary-acme-tool is enabled", "Nothing was changed"):
        assert said in operator.post(f"{path}enable/", follow=True).content.decode()
        assert served(acme) == ["canary-acme-tool"]


@pytest.mark.parametrize("page", ["edit", "new"])
def test_a_form_inspects_only_granted_functions(operator, acme, page):
    path = f"{TOOLS}{acme.tool}/edit/" if page == "edit" else f"{NEW}?kind=python"
    operator.get(path)  # what is loaded once
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and OURS in frame.f_code.co_filename:
            calls[frame.f_code.co_qualname] += 1

    sys.setprofile(count)
    try:
        assert operator.get(path).status_code == 200
    finally:
        sys.setprofile(None)
    granted = selectors.granted_functions(acme.tenant, PrimitiveType.TOOL)
    assert len(granted) < len(kinds.functions()) / 10
    assert calls["granted_functions"] == 1
    assert calls["PythonKind.compile"] <= 2 * len(granted) + 1
    assert calls.total() < 400


def test_archived_tools_are_neither_listed_nor_counted_in_the_menu(operator, acme):
    operator.post(NEW, form(_publish=""))
    before = _numbers(operator)
    operator.post(f"{TOOLS}{row('say').id}/archive/", {"confirm": "1"})
    assert row("say").state == "archived"
    listed, in_menu = _numbers(operator)
    assert listed == in_menu == before[0] - 1


def _numbers(operator) -> tuple[int, int]:
    """Return how many tools the list shows, and how many the menu says that there are."""
    page = operator.get(TOOLS)
    items = [item for group in page.context["menu"].groups for item in group["items"]]
    badges = {item["title"]: item.get("badge", 0) for item in items}
    return len(page.context["rows"]), badges["Tools"]


def test_a_list_of_archived_tools_leads_to_them(operator, acme):
    Primitive.objects.filter(tenant__slug="acme", primitive_type="tool").update(state="archived")
    page = operator.get(TOOLS).content.decode()
    assert "No tools but archived ones" in page
    assert f"{TOOLS}?state=archived" in page
