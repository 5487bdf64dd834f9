"""Tests of prompts, resources and templates that are written in the console."""

from base64 import b64encode
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors, services
from mcphost.catalogue.models import Primitive
from mcphost.feed.models import Change
from mcphost.kinds.primitive_types import PrimitiveType
from tests.console.forms.submitted_forms import problems
from tests.console.tenant_data import ACTOR, Things, text_fields

PNG = b"\x89PNG\r\n\x1a\n of a kind"
EVIL = "<script>alert(1)</script>{{ 7*7 }}"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def path(sort: str, rest: str = "") -> str:
    return f"/admin/t/acme/{sort}s/{rest}"


def row(name: str) -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name=name)


def prompt(**changes: Any) -> dict[str, Any]:
    return {
        "name": "greet",
        "description": "Greets",
        "arguments-0-name": "who",
        "arguments-0-required": "on",
        "arguments-0-choices": "Ada\r\nAlan",
        "messages-0-role": "user",
        "messages-0-type": "text",
        "messages-0-text": "Hello {who}",
        **changes,
    }


def resource(**changes: Any) -> dict[str, Any]:
    return {"uri": "docs://a", "name": "a", "holds": "text", "text": "words", **changes}


def template(**changes: Any) -> dict[str, Any]:
    return {"uri": "docs://{page}{?lang}", "name": "t", "text": "{page} in {lang}", **changes}


FORMS = {"prompt": prompt, "resource": resource, "template": template}


@pytest.mark.parametrize("sort", FORMS)
def test_primitives_of_each_type_are_saved_published_edited_and_disabled(operator, acme, sort):
    fields = FORMS[sort]()
    response = operator.post(path(sort, "new/"), fields)
    made = row(fields["name"])
    page = path(sort, f"{made.id}/")
    assert (response["Location"], made.primitive_type, made.kind, made.state) == (
        page,
        sort,
        "text",
        "draft",
    )
    assert "As clients would see it" in operator.get(page).content.decode()
    operator.post(f"{page}publish/")
    assert made.id in [each.id for each in selectors.offering(acme.tenant).everything]
    assert "As clients see it" in operator.get(page).content.decode()

    operator.post(f"{page}edit/", {**fields, "title": "Another", "messages-0-text": "Bye {who}"})
    labels = [each.label for each in operator.get(page).context["offer"].differences]
    assert labels == (["Messages", "Title"] if sort == "prompt" else ["Title"])
    operator.post(f"{page}disable/")
    assert made.id not in [each.id for each in selectors.offering(acme.tenant).everything]


PNG_CARRIED = f"data:image/png;base64,{b64encode(PNG).decode()}"


@pytest.mark.parametrize(
    ("sort", "changes", "where", "said"),
    [
        ("prompt", {"description": ""}, "description", "description"),
        ("prompt", {"messages-0-text": "Hello {whom}"}, "messages.text", "no argument 'whom'"),
        ("prompt", {"arguments-5-name": "who"}, "arguments", "two arguments called 'who'"),
        ("resource", {"uri": "docs://canary-acme"}, "uri", "Another resource"),
        ("resource", {"holds": "file"}, "file", "Choose a file"),
        (
            "resource",
            {"holds": "file", "kept": PNG_CARRIED, "mime_type": "image/webp"},
            "file",
            "does not match its MIME type (image/webp)",
        ),
        ("template", {"uri": "docs://a"}, "uri", "no {variable}"),
        (
            "template",
            {"variables-0-name": "x", "variables-0-choices": "1"},
            "variables",
            "no variable 'x'",
        ),
    ],
)
def test_invalid_fields_are_reported_and_no_input_is_saved_or_lost(
    operator: Client, sort: str, changes: dict[str, str], where: str, said: str
) -> None:
    fields = FORMS[sort](**{**changes, "title": "kept title"})
    page = operator.post(path(sort, "new/"), {**fields, "_publish": ""})
    assert said in problems(page.context["form"], where)
    text = page.content.decode()
    assert "Nothing was saved" in text
    for name, value in fields.items():
        if value and name not in ("holds", "name", "messages-0-type", "messages-0-role"):
            assert f'name="{name}"' in text, name
    assert "kept title" in text
    assert not Primitive.objects.filter(name=fields["name"]).exists()


def test_an_uploaded_file_survives_errors_and_edits_unchanged(operator: Client) -> None:
    file = SimpleUploadedFile("a.png", PNG, "image/png")
    page = operator.post(path("resource", "new/"), resource(name="", holds="file", file=file))
    carried = page.context["form"].part.carried
    operator.post(path("resource", "new/"), resource(holds="file", kept=carried, _publish=""))
    made = row("a")
    stored = {"uri": "docs://a", "mime_type": "image/png", "blob": b64encode(PNG).decode()}
    assert made.config == stored
    shown = operator.get(path("resource", f"{made.id}/")).content.decode()
    assert f'src="data:image/png;base64,{stored["blob"]}"' in shown
    edit = path("resource", f"{made.id}/edit/")
    kept = operator.get(edit).context["form"].part
    assert (kept.carried, kept["holds"].value()) == (kept.blob.digest, "file")
    operator.post(edit, resource(title="B", holds="file", kept=kept.carried, mime_type="image/png"))
    assert row("a").config == stored
    operator.post(edit, resource(title="C", holds="file", kept="f" * 64))
    assert row("a").title == "B"


def test_the_digest_of_a_file_gives_no_access_to_a_file_of_another_tenant(
    operator: Client, globex: Things
):
    config = {"uri": "docs://b", "mime_type": "image/png", "blob": b64encode(PNG).decode()}
    services.create(globex.tenant, text_fields(PrimitiveType.RESOURCE, "b", config), ACTOR)
    file = SimpleUploadedFile("a.png", PNG, "image/png")
    operator.post(path("resource", "new/"), resource(holds="file", file=file))
    digest = operator.get(path("resource", f"{row('a').id}/edit/")).context["form"].part.blob.digest
    page = operator.post(path("resource", "new/"), resource(name="c", holds="file", kept=digest))
    assert "Choose it again" in page.content.decode()


def test_the_preview_of_a_prompt_is_rendered_with_example_values(operator: Client) -> None:
    rows = {
        "messages-1-role": "assistant",
        "messages-1-type": "image",
        "messages-1-file": SimpleUploadedFile("a", PNG, "image/png"),
        "messages-2-role": "user",
        "messages-2-type": "resource",
        "messages-2-uri": "docs://inside",
        "messages-2-text": "about {who}",
    }
    operator.post(path("prompt", "new/"), prompt(**rows, _publish=""))
    page = operator.get(path("prompt", f"{row('greet').id}/"))
    offer = page.context["offer"]
    assert [(each.role, each.text, each.uri) for each in offer.shown] == [
        ("user", "Hello Ada", ""),
        ("assistant", "", ""),
        ("user", "about Ada", "docs://inside"),
    ]
    assert offer.example == {"who": "Ada"}
    assert '"arguments": {"who": "Ada"}' in offer.curl
    assert "prompts/get" in offer.curl


def test_a_primitive_is_not_found_under_the_url_of_another_type(operator, acme):
    for sort in FORMS:
        assert operator.get(path(sort, f"{acme.tool}/")).status_code == 404
    assert operator.get(path("tool", f"{acme.prompt}/edit/")).status_code == 404
    assert operator.post(path("tool", f"{acme.prompt}/disable/")).status_code == 404


def announced() -> list[str]:
    changes = Change.objects.filter(name="resource.updated").order_by("seq")
    return list(changes.values_list("object_id", flat=True))


def test_announcing_a_resource_is_confirmed_and_recorded(operator: Client, acme: Things):
    page = path("resource", f"{acme.resource}/")
    ask = f"{page}announce/"
    assert ask in operator.get(page).content.decode()
    assert "docs://canary-acme" in operator.get(ask).content.decode()
    assert announced() == []
    assert operator.post(ask, {"uri": "docs://elsewhere"})["Location"] == page
    assert announced() == ["docs://canary-acme"]
    entry = Entry.objects.get(action="resource.announced")
    assert (entry.target, entry.actor_label) == ("docs://canary-acme", "operator")


def test_unserved_resources_and_auditors_cannot_announce_updates(operator, auditor, acme):
    page = path("resource", f"{acme.resource}/")
    assert "announce/" not in auditor.get(page).content.decode()
    services.disable(acme.resource, ACTOR)
    assert "announce/" not in operator.get(page).content.decode()
    assert "No resource or template" in operator.post(f"{page}announce/").content.decode()
    assert announced() == []


@pytest.mark.parametrize("sort", ["tool", *FORMS])
def test_texts_of_published_primitives_are_escaped(operator: Client, sort: str) -> None:
    """Snapshots of versions are not among the rows in which the walk plants hostile texts."""
    texts = {"title": EVIL, "description": EVIL, "text": EVIL, "messages-0-text": EVIL}
    tool = {"kind": "python", "function": "probe.echo", "name": "say"}
    fields = {**(FORMS[sort]() if sort in FORMS else tool), **texts}
    operator.post(path(sort, "new/"), {**fields, "_publish": ""})
    made = row(fields["name"])
    assert made.live is not None
    for page in (path(sort), path(sort, f"{made.id}/"), path(sort, f"{made.id}/edit/")):
        assert "<script>alert" not in operator.get(page).content.decode(), page


def test_a_template_is_previewed_with_values_for_its_variables(operator: Client) -> None:
    operator.post(path("template", "new/"), template(_publish=""))
    address = path("template", f"{row('t').id}/")
    page = operator.get(address)
    assert page.context["offer"].shown[0].text == "page in lang"
    assert page.context["offer"].example_uri == "docs://page?lang=lang"
    page = operator.get(address, {"example-page": "a/b", "example-lang": "", "example-other": "x"})
    offer = page.context["offer"]
    assert offer.shown[0].text == "a/b in lang"
    assert offer.example == {"page": "a/b", "lang": "lang"}
    assert offer.example_uri == "docs://a%2Fb?lang=lang"
    assert 'name="example-page" value="a/b"' in page.content.decode()
    hostile = operator.get(address, {"example-page": EVIL}).content.decode()
    assert EVIL not in hostile


def test_the_suggestions_of_a_prompts_arguments_are_shown(operator: Client) -> None:
    operator.post(path("prompt", "new/"), prompt(_publish=""))
    page = operator.get(path("prompt", f"{row('greet').id}/")).content.decode()
    assert "<td>Ada, Alan</td><td>yes</td>" in page
    assert '<option value="Alan"></option>' in page
