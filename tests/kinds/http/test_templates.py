"""Tests of texts and JSON with placeholders."""

import pytest

from mcphost.kinds.http.templates import (
    MISSING,
    TemplateError,
    TextTemplate,
    as_text,
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
        ("", ""),
        ("{arguments.city}!", "Bern {arguments.n}!"),
        ('{arguments."System.State"}', "Done"),
        ("{arguments.list.1.b}", "1.5"),
        ("{arguments.list}", '["a",{"b":1.5}]'),
        ("{{arguments.city}}", "{arguments.city}"),
        ('{"json": {"stays": 1}}', '{"json": {"stays": 1}}'),
    ],
)
def test_values_are_inserted_only_once(text: str, expected: str) -> None:
    assert filled(text) == expected


@pytest.mark.parametrize(
    "path", ["none", "other", "list.2", "list.x", "city.more", "list.1.b.c", "list.-1"]
)
def test_a_missing_value_leaves_out_the_whole_text(path: str) -> None:
    assert filled(f"a {{arguments.{path}}} b") is MISSING


@pytest.mark.parametrize(
    "text",
    [
        "{city}", "{argument.city}", "{arguments}", "{arguments.}", "{arguments..a}",
        "{arguments.a b}", '{arguments."a}', "{secrets.key.part}", "{answers.ä}",
    ],
)  # fmt: skip
def test_an_invalid_placeholder_is_reported_with_the_way_to_escape_it(text: str) -> None:
    with pytest.raises(TemplateError) as caught:
        TextTemplate(text)
    assert text in str(caught.value)
