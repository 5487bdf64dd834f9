"""Tests of the gallery: picking a template fills in the form of a new tool, and saves nothing."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from django.test import Client

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.models import Primitive
from mcphost.console.primitives.gallery import FOLDER, templates
from mcphost.tenants.services import update_tenant
from tests.cast import Cast
from tests.console.forms.submitted_forms import SentForm

TOOLS = "/admin/t/acme/tools/"
NEW = f"{TOOLS}new/"
EVERY = sorted(templates())
MINE = "https://shop.example.com/v1"

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def picking(key: str, **query: str) -> dict[str, str]:
    return {"template": key, **query}


def allow(cast: Cast, *hosts: str) -> None:
    fields = replace(cast.acme.fields, outgoing_hosts=hosts)
    update_tenant(cast.acme.id, fields, actor=Actor.system("tests"))


def test_every_file_of_the_gallery_folder_is_a_template() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == EVERY
    assert {each.kind for each in templates().values()} == {"http", "script"}
    assert len({each.name for each in templates().values()}) == len(EVERY)


def test_the_document_lists_every_template() -> None:
    lines = (ROOT / "docs" / "kinds.md").read_text().splitlines()
    for each in templates().values():
        assert f"| {each.title} | {each.kind} | {each.about} |" in lines


@pytest.mark.parametrize("key", EVERY)
def test_a_template_has_texts_and_passes_all_checks_of_its_kind(key: str) -> None:
    template = templates()[key]
    fields = template.fields()
    assert fields.title and not fields.title.endswith(".")
    assert template.title and template.about.endswith(".")
    assert kinds.inspect_config(fields.kind, fields.config, uuid4()) == {}
    compiled = kinds.compile_config(fields.kind, fields.config)
    assert fields.description or compiled.description
    properties = compiled.input_schema["properties"]
    assert all("description" in each or "enum" in each for each in properties.values())
    if fields.kind == "script":
        assert compiled.name == fields.name
        assert {"readOnlyHint", "openWorldHint"} <= compiled.annotations.keys()


@pytest.mark.parametrize("key", EVERY)
def test_a_selected_template_fills_the_form_and_is_saved_only_by_saving(operator, key):
    before = Primitive.objects.count()
    template = templates()[key]
    address = MINE if template.address else ""
    page = operator.get(NEW, picking(key, address=f"{address}/") if address else picking(key))
    form = page.context["form"]
    assert (form.kind, form["name"].value()) == (template.kind, template.name)
    assert template.title in page.content.decode()
    assert [way.kind for way in page.context["ways"] if way.current] == [template.kind]
    assert Primitive.objects.count() == before
    saved = operator.post(NEW, SentForm(page.content.decode()).fields)
    assert saved.status_code == 302, saved.context["form"].errors
    tool = Primitive.objects.get(tenant__slug="acme", name=template.name)
    wanted = template.fields(address)
    assert (tool.kind, tool.state) == (wanted.kind, "draft")
    assert tool.time_limit_seconds == wanted.time_limit_seconds
    model = kinds.KINDS[wanted.kind].config_model(wanted.primitive_type)
    assert model.model_validate(tool.config) == model.model_validate(wanted.config)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ftp://shop.example.com", "must begin with https://"),
        ("https://shop.example.com/?a=b", "no query"),
        ('https://shop.example.com"', "not a valid name"),
        ("https://user:word@shop.example.com", "user name"),
        ("https://other.example.com", "not among the hosts"),
    ],
)
def test_an_invalid_address_is_refused_at_its_field_and_not_inserted(operator, cast, address, said):
    allow(cast, "shop.example.com")
    page = operator.get(NEW, picking("approval", address=address))
    assert page.status_code == 200
    assert said in " ".join(page.context["picked"].form.errors["address"])
    assert page.context["form"].part["code"].value() == templates()["approval"].config["code"]


def test_an_address_cannot_break_out_of_the_code(operator: Client) -> None:
    hostile = 'https://shop.example.com/"+secret("a")+"{{arguments.a}}'
    page = operator.get(NEW, picking("approval", address=hostile))
    code = page.context["form"].part["code"].value()
    assert code.startswith('API = "https://shop.example.com/%22+secret(%22a%22)+%22%7B%7Barguments')
