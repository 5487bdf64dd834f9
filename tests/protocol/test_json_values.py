"""JSON values: halves of surrogate pairs are replaced; what can be stored and what has a digest."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.json_values import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_LONE_SURROGATES,
    check_json,
    digest,
    dump_json,
    parse_json,
    repaired_json,
    without_lone_surrogates,
)

EMOJI = "\U0001f600"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"a\ud83d"', "a\ufffd"),
        (rb'"\ude00a"', "\ufffda"),
        (rb'"\uD83D\ud83d\uDE00"', f"\ufffd{EMOJI}"),
        (rb'"\ud83d\n\ude00"', "\ufffd\n\ufffd"),
        (rb'"\\ud83d\ud83d"', "\\ud83d\ufffd"),
        (rb'{"\ud83d": ["\u00e9\ud83d"]}', {"\ufffd": ["\u00e9\ufffd"]}),
        (b'"a\xed\xa0\xbd"', "a\ufffd"),
        (b'"\xed\xa0\xbd\xed\xb8\x80"', EMOJI),
        (b'"' + b"\\ud83d" * MAX_LONE_SURROGATES + b'"', "\ufffd" * MAX_LONE_SURROGATES),
        (b'"' + b"\xed\xa0\xbd" * MAX_LONE_SURROGATES + b'"', "\ufffd" * MAX_LONE_SURROGATES),
    ],
)
def test_an_unpaired_surrogate_in_json_becomes_a_replacement_character(
    text: bytes, value: Any
) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b'"\xff"',
        b'"\xed\xa0\xbd\xff"',
        rb'"\ud83d',
        rb"\ud83d",
        b'"' + b"\\ud83d" * (MAX_LONE_SURROGATES + 1) + b'"',
        b'"' + b"\xed\xa0\xbd" * (MAX_LONE_SURROGATES + 1) + b'"',
        b"{",
    ],
)
def test_json_that_is_invalid_for_another_reason_is_refused(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parse_json(text)


def test_unpaired_surrogates_are_repaired_in_json_and_other_text_is_unchanged() -> None:
    assert repaired_json(rb'{"a": "\ud83d\ud83d\ude00"}') == rb'{"a": "\ufffd\ud83d\ude00"}'
    for text in (rb"let half = '\ud83d';", rb'"\ud83d\ude00"', b"plain"):
        assert repaired_json(text) == text


@given(st.lists(st.sampled_from([r"\ud83d", r"\ude00", r"\\", r"\"", "a", r"\n", "\u00e9"])))
def test_the_standard_library_parses_the_same_text_equally(parts: list[str]) -> None:
    written = '"' + "".join(parts) + '"'
    assert parse_json(written.encode()) == without_lone_surrogates(json.loads(written))


def test_unpaired_surrogates_in_a_value_are_replaced_and_other_values_are_unchanged() -> None:
    value = {"a\ud83d": ["\ud83d\ude00", "é", ("\ude00", 5)], "b": None}
    clean = {"a\ufffd": [EMOJI, "é", ["\ufffd", 5]], "b": None}
    assert dump_json(value) == (orjson.dumps(clean), clean)
    text, same = dump_json(clean)
    assert (text, same is clean) == (orjson.dumps(clean), True)
    with pytest.raises(TypeError):
        dump_json({"a": object()})


def test_a_digest_ignores_the_order_of_keys_and_nothing_else():
    assert digest({"a": 1, "b": [2, 3]}) == digest({"b": [2, 3], "a": 1})
    others = [{"a": 1}, {"a": 1.5}, {"a": "1"}, {"a": True}, {"a": None}, {"b": 1}, [1], [[1]], {}]
    assert len({digest(other) for other in others}) == len(others)


def test_a_digest_is_short_and_safe_in_a_url():
    assert digest({}) == "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, "\ud800", {5: 5}, object(), {"a": {1}}])
def test_values_without_a_canonical_json_form_have_no_digest(value):
    with pytest.raises(ValueError, match=r".+"):
        digest(value)


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
