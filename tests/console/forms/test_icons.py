"""Tests of icons in a tool's form: uploaded or elsewhere, kept, shown, not lost by an error."""

from base64 import b64encode
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcphost.catalogue.models import Primitive
from mcphost.console.forms.icons import MAX_BYTES

NEW = "/admin/t/acme/tools/new/"
PNG = b"\x89PNG\r\n\x1a\n of a kind"
WEBP = b"RIFF\0\0\0\0WEBPVP8 "

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def uri(data: bytes, name: str = "image/png") -> str:
    return f"data:{name};base64,{b64encode(data).decode()}"


def image(data: bytes = PNG, says: str = "image/png") -> SimpleUploadedFile:
    return SimpleUploadedFile("icon", data, says)


def form(**changes: Any) -> dict[str, Any]:
    return {"function": "probe.echo", "name": "say", **changes}


def saved() -> Any:
    return Primitive.objects.get(tenant__slug="acme", name="say").icons


def edit_page() -> str:
    return f"/admin/t/acme/tools/{Primitive.objects.get(name='say').pk}/edit/"


def kept(client: Client, page: str) -> list[str]:
    return [row.carried for row in client.get(page).context["form"].icons.filled]


def test_uploaded_icons_keep_the_order_of_the_form_and_their_detected_type(operator: Client):
    rows = {
        "icons-7-kept": "",
        "icons-7-file": image(WEBP, "image/png"),
        "icons-7-sizes": "48x48, any",
        "icons-7-theme": "dark",
        "icons-2-kept": "",
        "icons-2-address": "https://example.com/a.svg?b=1",
        "icons-3-address": " ",
        "icons-4-address": "https://example.com/left-out.png",
        "icons-4-remove": "on",
    }
    operator.post(NEW, form(**rows))
    assert saved() == [
        {
            "src": uri(WEBP, "image/webp"),
            "mimeType": "image/webp",
            "sizes": ["48x48", "any"],
            "theme": "dark",
        },
        {"src": "https://example.com/a.svg?b=1", "mimeType": "image/svg+xml"},
    ]


def test_an_edit_can_keep_remove_and_replace_icons(operator: Client) -> None:
    operator.post(NEW, form(**{"icons-0-file": image(), "icons-1-file": image(WEBP)}))
    page = edit_page()
    png, webp = kept(operator, page)
    assert len(png) == len(webp) == 64
    text = operator.get(page).content.decode()
    assert uri(PNG) in text
    operator.post(page, form(**{"icons-1-kept": webp, "icons-0-kept": png}))
    assert [icon["src"] for icon in saved()] == [uri(WEBP, "image/webp"), uri(PNG)]
    operator.post(page, form(**{"icons-0-kept": png, "icons-1-kept": webp, "icons-1-remove": "on"}))
    assert [icon["src"] for icon in saved()] == [uri(PNG)]
    operator.post(page, form(**{"icons-0-kept": png, "icons-0-file": image(WEBP)}))
    assert [icon["src"] for icon in saved()] == [uri(WEBP, "image/webp")]
    operator.post(page, form())
    assert saved() == []


def test_an_uploaded_icon_survives_an_error_in_another_field(operator: Client) -> None:
    page = operator.post(NEW, form(name="no blanks please", **{"icons-0-file": image()}))
    (row,) = page.context["form"].icons.filled
    assert row.carried == uri(PNG)
    assert f'name="icons-0-kept" value="{uri(PNG)}"' in page.content.decode()
    operator.post(NEW, form(**{"icons-0-kept": row.carried}))
    assert saved() == [{"src": uri(PNG), "mimeType": "image/png"}]


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"icons-0-file": image(b"GIF89a")}, "file", "not a PNG, JPEG or WebP"),
        ({"icons-0-file": image(PNG + b"0" * MAX_BYTES)}, "file", "larger than 47 KiB"),
        ({"icons-0-file": image(), "icons-0-address": "https://a/b.png"}, "address", "not both"),
        ({"icons-0-kept": "0" * 64}, "kept", "Choose it again"),
        ({"icons-0-kept": uri(PNG + b"0" * MAX_BYTES)}, "kept", "larger than"),
    ],
)
def test_an_icon_problem_is_shown_in_its_row(operator, fields, field, said):
    page = operator.post(NEW, form(**fields))
    (row,) = page.context["form"].icons.filled
    assert list(row.errors) == [field]
    assert said in row.errors[field][0]
    assert said in page.content.decode()
    assert "Nothing was saved" in page.content.decode()
    assert not Primitive.objects.filter(name="say").exists()
