"""Tests of the check of scripts while they are typed, and of what the page gives the editor."""

import json
import re

import pytest
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.catalogue import kinds
from mcphost.catalogue.models import Primitive
from mcphost.console.forms.script_part import START
from mcphost.kinds.script.kind import script_kind
from mcphost.kinds.script.signature import MOST_CHARACTERS
from mcphost.sandbox.processes import WorkerLost
from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.things import Things

CHECK = "/admin/t/acme/tools/check/"
NEW = "/admin/t/acme/tools/new/?kind=script"
WRONG = "def greet(name: str) -> str:\n    return 1\n"

pytestmark = pytest.mark.django_db


def test_a_good_script_has_no_problems_and_its_arguments_are_shown(
    operator: Client, acme: Things
) -> None:
    before = Primitive.objects.count(), Entry.objects.count()
    reply = operator.post(CHECK, {"code": START.replace("\n", "\r\n")})
    assert reply.status_code == 200
    assert reply.json() == {
        "problems": [],
        "input_schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        },
    }
    assert (Primitive.objects.count(), Entry.objects.count()) == before


@pytest.mark.parametrize(
    ("code", "line", "column", "said"),
    [
        (WRONG, 2, 12, "Return type"),
        ("def f():\n    return nothing\n", 2, 12, "nothing"),
        ("def f(:\n", 1, 7, "Invalid syntax"),
        ("", 1, 1, "There is no function"),
        ("x = '\0'", 1, 1, "null"),
        ("#" * (MOST_CHARACTERS + 1), 1, 1, "has more than 65536 characters"),
        ("1 / 0\ndef f(): pass", 1, 1, "ZeroDivisionError"),
    ],
)
def test_problems_have_a_place_and_are_those_of_saving(
    operator: Client, acme: Things, code: str, line: int, column: int, said: str
) -> None:
    found = operator.post(CHECK, {"code": code}).json()["problems"]
    assert (found[0]["line"], found[0]["column"]) == (line, column)
    assert said.lower() in found[0]["message"].lower()
    saved = (
        script_kind.inspect({"code": code}, "acme").get("code", []) if 0 < len(code) < 999 else []
    )
    assert saved in ([], [f"Line {line}, column {column}: {found[0]['message']}"])


def test_arguments_are_shown_despite_a_problem_in_the_code(operator: Client, acme: Things) -> None:
    found = operator.post(CHECK, {"code": WRONG}).json()
    assert list(found["input_schema"]["properties"]) == ["name"]
    assert operator.post(CHECK, {"code": "def f(:"}).json()["input_schema"] is None


def test_a_body_that_is_far_too_large_is_refused_unread(operator: Client, acme: Things) -> None:
    reply = operator.post(CHECK, {"code": "#" * 4_000_000})
    assert reply.status_code in (400, 413)


def test_only_those_who_may_edit_tools_can_check(
    cast: Cast, acme: Things, browse: Browser, auditor: Client
) -> None:
    assert auditor.post(CHECK, {"code": START}).status_code == 403
    assert browse(cast.stranger).post(CHECK, {"code": START}).status_code == 403
    assert browse(cast.owner).get(CHECK).status_code == 405
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(cast.owner.user)
    assert careful.post(CHECK, {"code": START}).status_code == 403
    assert Client().post(CHECK, {"code": START}).status_code == 302


def test_checks_while_typing_and_saving_share_the_places(
    operator: Client, cast: Cast, acme: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = script_kind.sandbox.places_to_check
    with places.place(str(cast.acme.id)):
        refused = operator.post(CHECK, {"code": START})
        assert (refused.status_code, refused["Retry-After"]) == (429, "2")
        with monkeypatch.context() as patched:
            patched.setattr("mcphost.kinds.script.kind.WAIT_SECONDS", 0.01)
            saved = kinds.inspect_config("script", {"code": START}, cast.acme.id)
        said = "Other scripts are checked now. Save the script again in a moment."
        assert saved == {"code": [said]}
    assert operator.post(CHECK, {"code": START}).status_code == 200


def test_a_check_that_no_worker_can_make_is_said_and_frees_its_place(
    operator: Client, acme: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*args: object) -> None:
        raise WorkerLost("it did not start")

    with monkeypatch.context() as patched:
        patched.setattr(script_kind.sandbox, "check", lost)
        reply = operator.post(CHECK, {"code": START})
        assert reply.status_code == 503
        assert "it did not start" in reply.json()["detail"]
    assert operator.post(CHECK, {"code": START}).status_code == 200


def test_the_page_gives_the_editor_what_it_suggests_and_the_arguments(
    operator: Client, acme: Things
) -> None:
    page = operator.get(NEW).content.decode()
    block = re.search(
        r'<script id="script-completions" type="application/json">(.*?)</script>', page
    )
    assert block is not None
    offered = json.loads(block[1])
    assert offered["secrets"] == ["canary_acme_secret"]
    assert "elicit" in [each["name"] for each in offered["functions"]]
    assert f'data-check="{CHECK}"' in page
    assert "editor/editor.js" in page
    assert "&quot;additionalProperties&quot;" in page


def test_other_forms_load_no_editor(operator: Client, acme: Things) -> None:
    for kind in ("http", "python"):
        page = operator.get(f"/admin/t/acme/tools/new/?kind={kind}").content.decode()
        assert "editor.js" not in page
