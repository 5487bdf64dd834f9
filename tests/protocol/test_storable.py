"""Tests of what JSON can be stored."""

from typing import Any

import pytest

from mcphost.protocol.json_values import MAX_DEPTH, MAX_INTEGER, check_json


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None, True, "é\n", -0.5, MAX_INTEGER - 1, -MAX_INTEGER, {"a": [1, (2,)]}, _nested(MAX_DEPTH),
    ],
)  # fmt: skip
def test_json_can_be_stored(value: Any) -> None:
    assert check_json(value) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (_nested(MAX_DEPTH + 1), "It is nested deeper than 64 levels."),
        ({1: 2}, "The keys of an object must be strings."),
        ({"a\0": 1}, "The character U+0000 is not allowed here."),
        (["\ud800"], "The character U+D800 is not allowed here."),
        (float("nan"), "Infinite numbers and NaN are not allowed here."),
        (MAX_INTEGER, "An integer has at most 64 bits."),
        (-MAX_INTEGER - 1, "An integer has at most 64 bits."),
        (b"", "Only strings, numbers, true, false, null, lists and objects are allowed here."),
    ],
)
def test_a_value_that_would_not_be_read_back_as_it_was_is_refused(value: Any, problem: str) -> None:
    assert check_json(value) == [problem]
