"""Tests of the form that a kind without a special part gets, with the kind of docs/kinds.md."""

import asyncio
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import kinds
from mcphost.catalogue.models import Primitive
from mcphost.console.forms.schema_part import SchemaPart
from mcphost.console.primitives.primitives import PUBLISH
from mcphost.testing import a_call, in_memory, run_through
from tests.console.tenant_data import Things

DOCS = Path(__file__).resolve().parents[3] / "docs"
ANY = {"type": "object", "properties": {"a": {"type": "integer"}}}
NEW = "/admin/t/acme/tools/new/"


pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def checklist(acme: Things, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documented kind, registered as its line would."""
    (source,) = re.findall(
        r"^```python\n(.*?)^```", (DOCS / "kinds.md").read_text(), re.MULTILINE | re.DOTALL
    )
    module = ModuleType("checklist")
    monkeypatch.setitem(sys.modules, "checklist", module)
    exec(compile(source, "docs/kinds.md", "exec"), module.__dict__)
    monkeypatch.setitem(kinds.KINDS, "checklist", module.ChecklistKind())


def form(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "checklist",
        "name": "release",
        "description": "What a release takes.",
        "config-value-steps": "Tag\r\nBuild",
        "config-value-marks": "dashes",
        **changes,
    }


def saved() -> Primitive:
    return Primitive.objects.get(name="release")


def edit() -> str:
    return f"/admin/t/acme/tools/{saved().id}/edit/"


def test_the_documented_kind_can_be_selected_published_and_run(operator: Client) -> None:
    page = operator.get(f"{NEW}?kind=checklist").content.decode()
    assert "<b>A checklist</b><span>When the model should follow the steps" in page
    assert "What is to be done. One per line." in page
    assert "Marked by" in page
    operator.post(NEW, form(**{PUBLISH: "1"}))
    assert (saved().kind, saved().state) == ("checklist", "published")
    assert saved().config == {"steps": ["Tag", "Build"], "marks": "dashes"}
    program = kinds.compile_config("checklist", saved().config).program
    tried = asyncio.run(run_through(program, a_call({"done": 1}), {}, in_memory()))
    assert tried.text == "- Build"


def test_invalid_fields_of_a_kind_are_reported_and_nothing_is_saved(operator: Client) -> None:
    fields = {"config-value-steps": " ", "config-value-marks": "stars"}
    part = operator.post(NEW, form(**fields)).context["form"].part
    assert part.errors.keys() == {"value-steps", "value-marks"}
    assert part["value-marks"].value() == "stars"
    assert not Primitive.objects.filter(name="release").exists()


def test_an_edit_shows_stored_values_and_keeps_unchanged_ones(operator: Client) -> None:
    operator.post(NEW, form())
    odd = ["Two\nlines", "Build"]  # one per line, they would be three
    Primitive.objects.filter(id=saved().id).update(config={"steps": odd})
    part = operator.get(edit()).context["form"].part
    assert part["value-steps"].value() == "Two\nlines\nBuild"
    operator.post(edit(), form(**{"config-value-steps": "Two\r\nlines\r\nBuild"}))
    assert saved().config == {"steps": odd, "marks": "dashes"}
    operator.post(edit(), form(**{"config-value-steps": "One"}))
    assert saved().config == {"steps": ["One"], "marks": "dashes"}


def test_a_problem_reported_by_the_kind_is_shown_at_its_field() -> None:
    part = SchemaPart(({"config-value-a": "1"}, None), {}, ANY)
    assert part.is_valid(), part.errors
    assert not part.wrong
    part.show_problems_at(["a", "0"], ["No."])
    part.show_problems_at(["b"], ["Unknown."])
    part.show_problems_at([], ["Nothing."])
    assert part.errors == {"value-a": ["No."], "__all__": ["Unknown.", "Nothing."]}
    assert part.wrong
