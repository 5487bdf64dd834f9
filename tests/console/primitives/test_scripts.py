"""Tests of tools that are scripts, written in the console."""

from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import selectors
from mcphost.catalogue.models import Primitive
from mcphost.console.forms.script_part import START
from mcphost.kinds.script.surroundings import declarations
from mcphost.runtime.program import TaskSupport
from tests.console.things import Things

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"

pytestmark = pytest.mark.django_db


def form(**changes: Any) -> dict[str, Any]:
    return {"kind": "script", "name": "greet", "code": START.replace("\n", "\r\n"), **changes}


def written() -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name="greet")


def test_the_initial_text_is_a_tool_that_can_be_published(operator: Client, acme: Things) -> None:
    page = operator.get(f"{NEW}?kind=script")
    assert page.context["form"].part["code"].value() == START
    operator.post(NEW, form(read_only="yes", destructive="no", _publish=""))
    tool = written()
    assert tool.config == {
        "code": START,
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    }
    (offered,) = [each for each in selectors.offering(acme.tenant).tools if each.name == "greet"]
    assert offered.listing["description"] == "Greet a person by name."


def test_a_script_is_edited_and_its_other_annotations_stay(operator: Client, acme: Things) -> None:
    operator.post(NEW, form(read_only="yes"))
    tool = written()
    tool.config["annotations"]["title"] = "Greeting"
    tool.save()
    changed = START.replace("Hello", "Bye")
    operator.post(f"{TOOLS}{tool.id}/edit/", form(code=changed, open_world="no"))
    assert written().config == {
        "code": changed,
        "annotations": {"title": "Greeting", "openWorldHint": False},
    }


def test_when_a_call_becomes_a_task_is_chosen_and_kept(operator: Client, acme: Things) -> None:
    operator.post(NEW, form(tasks="required", _publish=""))
    tool = written()
    assert tool.config == {"code": START, "tasks": "required"}
    (offered,) = [each for each in selectors.offering(acme.tenant).tools if each.name == "greet"]
    assert offered.task_support is TaskSupport.REQUIRED
    page = operator.get(f"{TOOLS}{tool.id}/edit/")
    assert page.context["form"].part["tasks"].value() == "required"
    operator.post(f"{TOOLS}{tool.id}/edit/", form(tasks="never"))
    assert written().config == {"code": START, "tasks": "never"}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def greet(name: str) -> str:\n    return 1\n", "Line 2, column"),
        ("def greet(name: str) -> str:\n    return nothing\n", "Line 2, column"),
        ("def greet(:\n", "Line 1, column"),
        ("", "at least 1"),
        ("</textarea><script>alert(1)</script>", "Line 1, column"),
    ],
)
def test_what_the_checker_finds_stands_beside_the_code_which_is_kept(
    operator: Client, acme: Things, code: str, said: str
) -> None:
    page = operator.post(NEW, form(code=code, _publish=""))
    assert said in " ".join(page.context["form"].part.errors["code"])
    assert page.context["form"].part["code"].value() == code
    assert "<script>alert(1)" not in page.content.decode()
    assert not Primitive.objects.filter(name="greet").exists()


def test_the_list_of_functions_names_those_that_scripts_are_checked_with(
    operator: Client, acme: Things
) -> None:
    functions = operator.get(f"{NEW}?kind=script").context["form"].part.functions
    offered = {
        line.split("(")[0][4:]
        for line in declarations(waits=False).splitlines()
        if line[:4] == "def "
    }
    assert {call.split("(")[0] for call, _ in functions} == {*offered, "http.get"}


def test_secrets_are_named(operator: Client, acme: Things) -> None:
    assert "<code>canary_acme_secret</code>" in operator.get(f"{NEW}?kind=script").content.decode()
