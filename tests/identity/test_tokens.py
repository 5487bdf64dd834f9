"""Tests of the text of a token: its format, and what is refused without a query."""

import hashlib
import re
import secrets
import string
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.identity import tokens

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def _number(text: str) -> int:
    value = 0
    for digit in text:
        value = value * 62 + BASE62.index(digit)
    return value


def test_a_token_has_four_parts_of_fixed_length_and_parses_into_its_id_and_sha256() -> None:
    text = tokens.new(secrets.token_bytes)
    prefix, token_id, secret, checksum = text.split("_")
    assert prefix == "mcph"
    assert (len(token_id), len(secret), len(checksum)) == (12, 43, 6)
    assert len(text) == tokens.LENGTH
    assert re.fullmatch(r"[0-9A-Za-z_]+", text)
    assert _number(checksum) == zlib.crc32(text.rpartition("_")[0].encode())
    parsed = tokens.parse(text)
    assert parsed is not None
    assert parsed.id == token_id
    assert parsed.digest == hashlib.sha256(text.encode()).digest() == tokens.digest(text)
    assert len({tokens.new(secrets.token_bytes) for _ in range(100)}) == 100


def test_the_secret_encodes_all_of_its_32_bytes() -> None:
    for drawn in (b"\x00" * 32, b"\xff" * 32, bytes(range(32))):
        text = tokens.new(lambda count, drawn=drawn: drawn[:count])  # type: ignore[misc]
        assert _number(text.split("_")[2]).to_bytes(32) == drawn


@given(st.binary(min_size=48, max_size=48))
def test_every_new_token_parses(drawn: bytes) -> None:
    text = tokens.new(lambda count: drawn[:count] if count == 16 else drawn[16:])
    assert tokens.parse(text) is not None


@given(st.integers(0, tokens.LENGTH - 1), st.sampled_from(BASE62))
def test_a_token_with_one_letter_changed_is_refused(place: int, letter: str) -> None:
    text = tokens.new(lambda count: b"\x5a" * count)
    changed = text[:place] + letter + text[place + 1 :]
    assert (tokens.parse(changed) is None) == (changed != text)


@given(st.text(st.characters(max_codepoint=0x250), max_size=100))
def test_malformed_token_texts_are_refused(text: str) -> None:
    assert tokens.parse(text) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text + "\n",
        lambda text: " " + text,
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text.replace("_", "-"),
        lambda text: text.upper(),
        lambda text: text[:5] + "\x00" + text[6:],
        lambda text: text[:5] + "é" + text[6:],
        lambda text: text[:5] + "٣" + text[6:],
    ],
)
def test_a_corrupted_token_is_refused(spoil: object) -> None:
    text = tokens.new(secrets.token_bytes)
    assert tokens.parse(spoil(text)) is None  # type: ignore[operator]
