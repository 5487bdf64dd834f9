"""Tests of texts and JSON with placeholders."""

from urllib.parse import quote

import pytest

from mcphost.egress.secret_values import SecretHandle, Template
from mcphost.kinds.http.templates import (
    MISSING,
    JsonTemplate,
    TemplateError,
    TextTemplate,
    as_text,
    names,
)

VALUES = {
    "arguments": {
        "city": "Bern {arguments.n}",
        "n": 3,
        "on": True,
        "none": None,
        "list": ["a", {"b": 1.5}],
        "System.State": "Done",
    },
    "answers": {"reason": {"comment": "late"}},
}


def filled(text: str):
    return TextTemplate(text).fill(VALUES, as_text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{arguments.city}!", "Bern {arguments.n}!"),
        ("{arguments.n}/{arguments.on}", "3/true"),
        ('{arguments."System.State"}', "Done"),
        ("{arguments.list.1.b}", "1.5"),
        ("{arguments.list}", '["a",{"b":1.5}]'),
        ("{answers.reason.comment}", "late"),
        ("{{arguments.city}}", "{arguments.city}"),
        ('{"json": {"stays": 1}}', '{"json": {"stays": 1}}'),
        ("{ spaced }", "{ spaced }"),
    ],
)
def test_values_are_inserted_once(text: str, expected: str) -> None:
    assert filled(text) == expected


@pytest.mark.parametrize(
    "path", ["none", "other", "list.2", "list.x", "city.more", "list.1.b.c", "list.-1"]
)
def test_a_value_that_is_missing_leaves_the_whole_text_out(path: str) -> None:
    assert filled(f"a {{arguments.{path}}} b") is MISSING


@pytest.mark.parametrize(
    "text",
    [
        "{city}",
        "{argument.city}",
        "{arguments}",
        "{arguments.}",
        "{arguments..a}",
        "{arguments.a b}",
        '{arguments."a}',
        "{secrets.key.part}",
        "{answers.ä}",
    ],
)
def test_a_placeholder_that_is_none_is_said_with_the_way_to_write_the_text(text: str) -> None:
    with pytest.raises(TemplateError) as caught:
        TextTemplate(text)
    assert text in str(caught.value)


def test_a_person_reads_nothing_where_a_value_is_missing() -> None:
    text = TextTemplate("Delete {arguments.n} of {arguments.other}?")
    assert text.read(VALUES) == "Delete 3 of ?"


def test_each_value_is_written_for_its_place() -> None:
    path = TextTemplate("/cities/{arguments.city}").fill(
        VALUES, lambda v: quote(as_text(v), safe="")
    )
    assert path == "/cities/Bern%20%7Barguments.n%7D"


def test_a_secret_stays_a_handle() -> None:
    bearer = Template(("Bearer ", SecretHandle("api_key"), " ", "3"))
    assert filled("Bearer {secrets.api_key} {arguments.n}") == bearer


def test_json_keeps_the_types_of_values() -> None:
    template = JsonTemplate(
        {
            "n": "{arguments.n}",
            "text": "n={arguments.n}",
            "list": ["{arguments.none}", "{arguments.list}", 7, None],
            "gone": "{arguments.other}",
            "key": "{secrets.api_key}",
            "{arguments.n}": "{{arguments.n}}",
        }
    )
    assert template.fill(VALUES) == {
        "n": 3,
        "text": "n=3",
        "list": [["a", {"b": 1.5}], 7, None],
        "key": Template((SecretHandle("api_key"),)),
        "{arguments.n}": "{arguments.n}",
    }
    assert names(template.placeholders, "secrets") == ["api_key"]
    assert names(template.placeholders, "arguments") == ["n", "none", "list", "other"]
