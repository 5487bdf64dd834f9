"""Tests of tools that are scripts: written, checked while they are typed, with the editor's data."""

from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import kinds, selectors
from mcphost.catalogue.models import Primitive
from mcphost.console.forms.script_part import START
from mcphost.kinds.kind import InspectionBusyError
from mcphost.kinds.script.kind import script_kind
from mcphost.kinds.script.signature import MAX_CHARACTERS
from mcphost.sandbox.check_slots import ChecksBusyError
from mcphost.sandbox.processes import WorkerLostError
from tests.console.tenant_data import Things

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"
SCRIPT = f"{NEW}?kind=script"
CHECK = f"{TOOLS}check/"
WRONG = "def greet(name: str) -> str:\n    return 1\n"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def form(**changes: Any) -> dict[str, Any]:
    return {"kind": "script", "name": "greet", "code": START.replace("\n", "\r\n"), **changes}


def written() -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name="greet")


def test_the_initial_script_can_be_published(operator: Client, acme: Things) -> None:
    assert operator.get(SCRIPT).context["form"].part["code"].value() == START
    operator.post(NEW, form(read_only="yes", destructive="no", _publish=""))
    tool = written()
    assert tool.config == {
        "code": START,
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    }
    (offered,) = [each for each in selectors.offering(acme.tenant).tools if each.name == "greet"]
    assert offered.listing["description"] == "Greet a person by name."


@pytest.mark.parametrize(
    ("code", "line", "column", "said"),
    [
        (WRONG, 2, 12, "Return type"),
        ("def f():\n    return nothing\n", 2, 12, "nothing"),
        ("def f(:\n", 1, 7, "Invalid syntax"),
        ("#" * (MAX_CHARACTERS + 1), 1, 1, "has more than 65536 characters"),
        ("1 / 0\ndef f(): pass", 1, 1, "ZeroDivisionError"),
    ],
)
def test_the_check_reports_the_same_positioned_problems_as_saving(
    operator, code, line, column, said
):
    (problem, *_) = operator.post(CHECK, {"code": code}).json()["problems"]
    assert (problem["line"], problem["column"]) == (line, column)
    assert said.lower() in problem["message"].lower()
    if 0 < len(code) < 999:
        saved = script_kind.inspect({"code": code}, "acme").get("code", [])
        assert saved in ([], [f"Line {line}, column {column}: {problem['message']}"])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (WRONG, "Line 2, column"),
        ("</textarea><script>alert(1)</script>", "Line 1, column"),
    ],
)
def test_script_problems_are_shown_at_the_code_and_the_code_is_kept(
    operator: Client, code: str, said: str
):
    page = operator.post(NEW, form(code=code, _publish=""))
    assert said in " ".join(page.context["form"].part.errors["code"])
    assert page.context["form"].part["code"].value() == code
    assert "<script>alert(1)" not in page.content.decode()
    assert not Primitive.objects.filter(name="greet").exists()


def test_checks_while_typing_and_saving_share_the_slots(operator, cast, monkeypatch):
    slots = script_kind.sandbox.check_slots
    with slots.slot(str(cast.acme.id)):
        refused = operator.post(CHECK, {"code": START})
        assert (refused.status_code, refused["Retry-After"]) == (429, "2")
        with monkeypatch.context() as patched:
            patched.setattr("mcphost.kinds.script.kind.WAIT_SECONDS", 0.01)
            with pytest.raises(InspectionBusyError) as busy:
                kinds.inspect_config("script", {"code": START}, cast.acme.id)
        said = "Other scripts are checked now. Save the script again in a moment."
        assert busy.value.problems == {"code": [said]}
    assert operator.post(CHECK, {"code": START}).status_code == 200


def test_a_check_without_a_worker_is_reported_and_releases_its_slot(operator, monkeypatch):
    def lost(*args: object) -> None:
        raise WorkerLostError("it did not start")

    with monkeypatch.context() as patched:
        patched.setattr(script_kind.sandbox, "check", lost)
        reply = operator.post(CHECK, {"code": START})
        assert reply.status_code == 503
        assert "it did not start" in reply.json()["detail"]
    assert operator.post(CHECK, {"code": START}).status_code == 200


def test_the_form_of_a_script_shows_what_describes_it_without_a_description(operator) -> None:
    page = operator.get("/admin/t/acme/tools/new/?kind=script")
    assert 'placeholder="Greet a person by name."' in page.content.decode()


def test_a_script_that_cannot_be_checked_now_is_not_saved_and_the_form_says_why(
    operator, monkeypatch
) -> None:
    def refuse(*arguments):
        raise ChecksBusyError("Other scripts are checked now.")

    monkeypatch.setattr(script_kind.sandbox, "check", refuse)
    code = "def greet(name: str) -> str:\n    return name\n"
    page = operator.post(
        "/admin/t/acme/tools/new/", {"kind": "script", "name": "greet", "code": code}
    )
    assert "Other scripts are checked now. Save the script again in a moment." in (
        page.content.decode()
    )
    assert not Primitive.objects.filter(name="greet").exists()
