"""Halves of surrogate pairs in JSON and in values."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.json_values import (
    MAX_HALVES,
    dump_json,
    parse_json,
    repaired_json,
    without_halves,
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
        (b'"' + b"\\ud83d" * MAX_HALVES + b'"', "\ufffd" * MAX_HALVES),
        (b'"' + b"\xed\xa0\xbd" * MAX_HALVES + b'"', "\ufffd" * MAX_HALVES),
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
        b'"' + b"\\ud83d" * (MAX_HALVES + 1) + b'"',
        b'"' + b"\xed\xa0\xbd" * (MAX_HALVES + 1) + b'"',
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
    assert parse_json(written.encode()) == without_halves(json.loads(written))


def test_unpaired_surrogates_in_a_value_are_replaced_and_other_values_are_unchanged() -> None:
    value = {"a\ud83d": ["\ud83d\ude00", "é", ("\ude00", 5)], "b": None}
    clean = {"a\ufffd": [EMOJI, "é", ["\ufffd", 5]], "b": None}
    assert dump_json(value) == (orjson.dumps(clean), clean)
    text, same = dump_json(clean)
    assert (text, same is clean) == (orjson.dumps(clean), True)
    with pytest.raises(TypeError):
        dump_json({"a": object()})
