"""Tests of the validation of titles, descriptions, scopes and time limits."""

from typing import Any

import pytest

from mcphost.catalogue.validation import (
    MAX_DESCRIPTION,
    MAX_SCOPES,
    MAX_SECONDS,
    MAX_TITLE,
    check_description,
    check_scopes,
    check_time_limit,
    check_title,
)


def test_a_title_has_one_line_and_a_description_may_have_several() -> None:
    assert check_title("Grüße, 世界 🎉") == check_title("") == []
    assert check_title("two\nlines") == ["The character U+000A is not allowed here."]
    assert check_description("two\r\nlines\tand a tab") == []
    for value in (None, 5, ["a"]):
        assert check_title(value) == check_description(value) == ["This must be a string."]


@pytest.mark.parametrize(
    ("check", "longest"), [(check_title, MAX_TITLE), (check_description, MAX_DESCRIPTION)]
)
def test_texts_are_bounded(check: Any, longest: int) -> None:
    assert check("x" * longest) == []
    assert check("x" * (longest + 1)) == [f"At most {longest} characters; this has {longest + 1}."]


@pytest.mark.parametrize("bad", ["\x00", "\x1b", "\x7f", "\ud800"])
def test_a_disallowed_character_is_named(bad: str) -> None:
    expected = [f"The character U+{ord(bad):04X} is not allowed here."]
    assert check_title(f"a{bad}") == check_description(f"a{bad}") == expected


@pytest.mark.parametrize(
    "scope",
    [
        "",
        "echo",
        "api:read",
        "MCP:echo",
        "mcp:" + "a" * 65,
        "mcp:a\n",
        5,
    ],
)
def test_an_invalid_scope_is_named(scope: Any) -> None:
    (problem,) = check_scopes([scope])
    assert "is not a scope" in problem


def test_scopes_are_a_list_of_at_most_sixteen_names_under_mcp() -> None:
    assert check_scopes(["mcp:echo", "mcp:work.items_2-x"]) == check_scopes(()) == []
    assert check_scopes("mcp:echo") == ["Scopes must be a list of strings."]
    names = [f"mcp:{number}" for number in range(MAX_SCOPES + 1)]
    assert check_scopes(names[1:]) == []
    assert check_scopes(names) == ["At most 16 scopes are allowed."]


@pytest.mark.parametrize("seconds", [0, MAX_SECONDS + 1, float("nan"), float("inf"), True, [5]])
def test_a_time_limit_out_of_range_is_refused(seconds: Any) -> None:
    assert check_time_limit(seconds) == [
        "The time limit must be more than 0 and at most 3600 seconds."
    ]
    assert [check_time_limit(fine) for fine in (None, 1, 0.05, MAX_SECONDS)] == [[]] * 4
