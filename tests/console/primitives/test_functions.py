from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from mcphost.catalogue import kinds, services
from mcphost.catalogue.models import Grant, Primitive
from mcphost.runtime.schema import ArgumentProblem
from tests.console.tenant_data import ACTOR, Things

FUNCTIONS = "/admin/t/acme/functions/"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def granted() -> list[str]:
    return list(Grant.objects.filter(tenant__slug="acme").values_list("function", flat=True))


def shown(client: Client) -> list[str]:
    return [row.reference for row in client.get(FUNCTIONS).context["functions"]]


def test_staff_see_all_functions_and_other_users_see_those_of_their_tenant(
    staff: Client, operator: Client
):
    assert shown(operator) == ["probe.echo"]
    assert set(shown(staff)) == {name for name, _ in kinds.functions()}


def test_selected_functions_are_granted_and_revoked_together(staff: Client) -> None:
    both = ["probe.write", "probe.echo"]
    answer = staff.post(
        f"{FUNCTIONS}change/", {"function": both, "verb": "grant", "list": "q=probe"}
    )
    changed = "q=probe&changed=probe.write"
    assert answer["Location"] == f"{FUNCTIONS}?{changed}#function-probe.write"
    assert granted() == ["probe.echo", "probe.write"]
    assert "acme may use probe.write." in staff.get(FUNCTIONS).content.decode()
    sent = {"function": both, "verb": "revoke"}
    confirmation = staff.post(f"{FUNCTIONS}change/", sent)
    assert (
        "no longer be able to use canary-acme-tool, which runs this."
        in confirmation.content.decode()
    )
    hidden = confirmation.context["repeated"]
    assert hidden == [
        *(("function", name) for name in both),
        ("verb", "revoke"),
        ("confirmed", "on"),
    ]
    assert granted() == ["probe.echo", "probe.write"]
    staff.post(f"{FUNCTIONS}change/", {**dict(hidden), "function": both})
    assert granted() == []
    assert "2 functions: probe.write, probe.echo" in staff.get(FUNCTIONS).content.decode()


def test_a_granted_function_leads_to_a_new_tool_and_then_to_that_tool(
    staff: Client, acme: Things
) -> None:
    new = "/admin/t/acme/tools/new/?kind=python&amp;function=probe.write"
    assert new not in staff.get(FUNCTIONS).content.decode()
    staff.post(f"{FUNCTIONS}change/", {"verb": "grant probe.write"})
    assert new in staff.get(FUNCTIONS).content.decode()
    form = staff.get(new.replace("&amp;", "&")).context["form"]
    assert form.part["function"].value() == "probe.write"
    fields = {"kind": "python", "function": "probe.write", "name": "writes", "_publish": ""}
    staff.post("/admin/t/acme/tools/new/", fields)
    row = next(
        row for row in staff.get(FUNCTIONS).context["functions"] if row.reference == "probe.write"
    )
    tool = Primitive.objects.get(tenant=acme.tenant, name="writes")
    assert [(use.name, use.id) for use in row.registered_as] == [("writes", tool.id)]
    page = staff.get(FUNCTIONS).content.decode()
    assert f'<a href="/admin/t/acme/tools/{tool.id}/">writes</a>' in page
    assert new not in page


@pytest.mark.parametrize("chosen", [["no.such"], ["probe.write", "no.such"]])
def test_a_selection_with_an_unknown_function_grants_none(staff, chosen):
    staff.post(f"{FUNCTIONS}change/", {"function": chosen, "verb": "grant"})
    assert granted() == ["probe.echo"]
    assert "There is no function" in staff.get(FUNCTIONS).content.decode()


def test_staff_see_loaded_missing_and_broken_functions(staff, acme, monkeypatch):
    Grant.objects.create(tenant_id=acme.tenant, function="gone.away")
    broken = ArgumentProblem("tools/broken.py:3", "SyntaxError: invalid syntax")
    monkeypatch.setattr(kinds.KINDS["python"], "check", lambda: [broken])
    page = staff.get("/admin/functions/")
    uses = {reference: tenants for reference, _, _, tenants in page.context["functions"]}
    assert (uses["probe.echo"], uses["probe.write"]) == (("acme", 0), None)
    for text in ("gone.away", "tools/broken.py:3", "SyntaxError"):
        assert text in page.content.decode()
    assert "SyntaxError" in staff.get("/admin/").content.decode()
    assert "not in the code" in staff.get(FUNCTIONS).content.decode()


def test_all_functions_are_searched_by_name_and_type(staff: Client) -> None:
    def names(query: str) -> list[str]:
        return [row[0] for row in staff.get(f"/admin/functions/?{query}").context["functions"]]

    assert names("q=ECHO") == ["probe.echo"]
    assert "probe.echo" in names("type=tool")
    assert "probe.echo" not in names("type=prompt")
    assert names("type=unknown") == names("")


CODE = '''
from mcphost.sdk import prompt, resource

@prompt(title="Plan")
def plan(city: str, days: int = 3) -> str:
    """Plans a trip."""
    return city

@resource("made://handbook")
def handbook() -> str:
    """The handbook."""
    return "words"

@resource("made://pages/{page}")
def pages(page: str) -> str:
    """A page."""
    return page
'''
MADE = {"prompt": "plan", "resource": "handbook", "template": "pages"}


@pytest.fixture
def made(acme: Things, settings: Settings, tmp_path: Path) -> Iterator[Things]:
    """Acme, with a granted function of each primitive type."""
    usual = settings.MCPHOST_TOOLS
    (tmp_path / "made.py").write_text(CODE)
    settings.MCPHOST_TOOLS = tmp_path
    kinds.discover()
    for name in MADE.values():
        services.grant_function(acme.tenant, f"made.{name}", ACTOR)
    yield acme
    settings.MCPHOST_TOOLS = usual
    kinds.discover()


@pytest.mark.parametrize(("sort", "name"), MADE.items())
def test_each_primitive_type_offers_its_own_functions(operator, made, sort, name):
    new = f"/admin/t/acme/{sort}s/new/"
    assert list(operator.get(new, {"kind": "python"}).context["authors"]) == [f"made.{name}"]
    fields = {"kind": "python", "function": f"made.{name}", "name": name, "_publish": ""}
    response = operator.post(new, fields)
    row = Primitive.objects.get(tenant=made.tenant, name=name)
    assert (row.kind, row.primitive_type, row.state) == ("python", sort, "published")
    offer = operator.get(response["Location"]).context["offer"]
    assert offer.function == f"made.{name}"
    assert (offer.shown, offer.example) == ((), {})
    assert {"plan": '{"city": "city"}', "handbook": "made://handbook"}.get(
        name, "made://pages/page"
    ) in offer.curl
    assert f"made.{name}" in operator.get(f"/admin/t/acme/{sort}s/").content.decode()
    assert operator.get(f"{response['Location']}edit/").context["form"].kind == "python"
