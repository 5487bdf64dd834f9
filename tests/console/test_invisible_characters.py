"""Tests of invisible characters: shown by their code points on pages, kept in form fields."""

import re
import sys
import unicodedata

import pytest
from django.test import Client

from mcphost.catalogue.models import Primitive
from mcphost.console.invisible_characters import shown_page, with_code_points
from tests.console.tenant_data import Things

OVERRIDE = "\N{RIGHT-TO-LEFT OVERRIDE}"


def test_every_control_and_format_character_is_shown_by_its_code_point() -> None:
    kept = {"\t", "\n", "\N{ZERO WIDTH JOINER}"}
    unseen = [
        each
        for each in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(each) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} and each not in kept
    ]
    assert [each for each in unseen if with_code_points(each) != f"⟨U+{ord(each):04X}⟩"] == []


@pytest.mark.parametrize("each", ["\u3164", "\u034f", "\ufe00", "\U000e0101"])
def test_zero_width_letters_marks_and_spaces_are_shown_by_their_code_point(each: str) -> None:
    assert with_code_points(f"a{each}b") == f"a⟨U+{ord(each):04X}⟩b"


def test_a_zero_width_joiner_outside_emoji_is_shown_by_its_code_point() -> None:
    assert (
        with_code_points("pay\u200dpal \u200d👩 👩\u200d") == "pay⟨U+200D⟩pal ⟨U+200D⟩👩 👩⟨U+200D⟩"
    )
    assert with_code_points("a\ufe0f\rb") == "a⟨U+FE0F⟩⟨U+000D⟩b"


def test_invisible_characters_in_form_fields_are_kept() -> None:
    page = '<p title="a\x01">b\x02</p><input value="c\x03"><textarea>d\x04</textarea>e\x05'
    assert shown_page(page) == (
        '<p title="a⟨U+0001⟩">b⟨U+0002⟩</p><input value="c\x03"><textarea>d\x04</textarea>e⟨U+0005⟩'
    )
    assert shown_page("plain") == "plain"


@pytest.mark.django_db
def test_pages_show_invisible_characters_and_forms_keep_them_with_a_warning(
    owner: Client, acme: Things
) -> None:
    title = f"safe{OVERRIDE}txt"
    Primitive.objects.filter(pk=acme.tool).update(title=title)
    path = f"/admin/t/acme/tools/{acme.tool}/"
    page = owner.get(path)
    text = page.content.decode()
    assert "safe⟨U+202E⟩txt" in text
    assert OVERRIDE not in text
    assert int(page.get("Content-Length", len(page.content))) == len(page.content)
    form = owner.get(f"{path}edit/").content.decode()
    assert f'value="{title}"' in form
    assert re.search(r"c-warned.>Contains characters that are not seen: U\+202E\.", form)
