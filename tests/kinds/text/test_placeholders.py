"""Tests of texts with placeholders."""

import pytest

from mcphost.kinds.text.placeholders import fill, names_in


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Hello {name}!", "Hello Ada!"),
        ("{name} and {name}", "Ada and Ada"),
        ("say {{name}}", "say {name}"),
        ('{"a": {name}}', '{"a": Ada}'),
        ("{ name } {1} {} {na me}", "{ name } {1} {} {na me}"),
        ("{other}", ""),
    ],
)
def test_only_names_between_braces_are_placeholders(text: str, filled: str) -> None:
    assert fill(text, {"name": "Ada"}) == filled


def test_an_inserted_value_is_not_interpreted() -> None:
    assert fill("{a} {b}", {"a": "{b} \\1 {{b}}", "b": "x"}) == "{b} \\1 {{b}} x"


def test_placeholder_names_are_listed_once_in_their_order() -> None:
    assert names_in("{b} {a} {{c}} {b}") == ["b", "a"]
