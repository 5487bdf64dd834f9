"""Tests of prompts, resources and templates that run Python functions, in the console."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from mcphost.catalogue import kinds, services
from mcphost.catalogue.models import Primitive
from tests.console.things import ACTOR, Things

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

pytestmark = pytest.mark.django_db


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
def test_each_sort_is_offered_its_own_functions_and_registered(
    operator: Client, made: Things, sort: str, name: str
) -> None:
    new = f"/admin/t/acme/{sort}s/new/"
    page = operator.get(new, {"kind": "python"})
    assert list(page.context["authors"]) == [f"made.{name}"]
    fields = {"kind": "python", "function": f"made.{name}", "name": name, "_publish": ""}
    response = operator.post(new, fields)
    row = Primitive.objects.get(tenant=made.tenant, name=name)
    assert (row.kind, row.sort, row.state) == ("python", sort, "published")
    offer = operator.get(response["Location"]).context["offer"]
    assert offer.function == f"made.{name}"
    assert (offer.shown, offer.example) == ((), {})
    assert {"plan": '{"city": "city"}', "handbook": "made://handbook"}.get(
        name, "made://pages/page"
    ) in offer.curl
    assert f"made.{name}" in operator.get(f"/admin/t/acme/{sort}s/").content.decode()
    assert operator.get(f"{response['Location']}edit/").context["form"].kind == "python"


def test_a_function_of_another_sort_is_refused_beside_it(operator: Client, made: Things) -> None:
    fields = {"kind": "python", "function": "made.plan", "name": "a"}
    page = operator.post("/admin/t/acme/resources/new/", fields)
    assert "function" in page.context["form"].part.errors


def test_the_functions_page_says_which_sort_each_is(staff: Client, made: Things) -> None:
    page = staff.get("/admin/t/acme/functions/")
    sorts = {row.reference: row.sort.value for row in page.context["functions"]}
    assert {name: sorts[f"made.{name}"] for name in MADE.values()} == {
        name: sort for sort, name in MADE.items()
    }
    words = {
        reference: words.one
        for reference, _, words, _ in staff.get("/admin/functions/").context["functions"]
    }
    assert words == {f"made.{name}": sort for sort, name in MADE.items()}
