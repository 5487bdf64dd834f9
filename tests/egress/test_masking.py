"""Tests of the forms in which services echo a value: none of them gets through, and none takes long."""

import base64
import html
import html.entities
import json
import quopri
import random
import re
from collections.abc import Callable, Mapping
from itertools import product
from urllib.parse import quote, quote_plus, unquote_to_bytes

import pytest

from mcphost.egress import masking
from mcphost.egress.errors import EgressResponseError
from mcphost.egress.masking import MASKED, Mask

VALUE = 's3cr3t/va=ue+w\\ith &"<marks>"~%z1\'x;'
PLAIN = "sk-live-0123456789abcdefABCDEF"
VALUES = [VALUE, PLAIN]
WIDE = ["ascii", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]

NAMED = {
    character: f"&{name}"
    for name, character in sorted(html.entities.html5.items(), reverse=True)
    if len(character) == 1 and name.endswith(";")
}

Escape = Callable[[str], str]


def each(written: Callable[[str], str]) -> Escape:
    return lambda text: "".join(map(written, text))


def mixed(text: str) -> str:
    """Write characters in turn as services of different languages do."""
    forms = list(ESCAPES.values())[:8]
    return "".join(forms[at % len(forms)](character) for at, character in enumerate(text))


ESCAPES: Mapping[str, Escape] = {
    r"\x41": each(lambda c: f"\\x{ord(c):02x}"),
    r"\101": each(lambda c: f"\\{ord(c):03o}"),
    r"\U00000041": each(lambda c: f"\\U{ord(c):08X}"),
    "%u0041": each(lambda c: f"%u{ord(c):04X}"),
    "&#65;": each(lambda c: f"&#{ord(c):04};"),
    "&#X41 without an end": each(lambda c: f"&#X{ord(c):06X}"),
    "percent in either case": each(lambda c: random.Random(c).choice([f"%{ord(c):02x}", f"%{ord(c):02X}"])),
    "names of HTML 5": each(lambda c: c if c.isalnum() else NAMED.get(c, c)),
    "Python": lambda text: repr(text.encode())[2:-1],
    "JavaScript": lambda text: json.dumps(text)[1:-1].replace("'", "\\x27").replace("/", "\\/"),
    "quoted-printable": lambda text: quopri.encodestring(text.encode()).decode(),
    "lines of four characters": lambda text: "\r\n ".join(text[at : at + 4] for at in range(0, len(text), 4)),
    "lines in JSON": lambda text: json.dumps("\n".join(text[at : at + 4] for at in range(0, len(text), 4)))[1:-1],
    "hexadecimal with spaces": lambda text: text.encode().hex(" "),
    "a list of bytes": lambda text: json.dumps(list(text.encode()))[1:-1],
    "a list of bytes without spaces": lambda text: ",".join(map(str, text.encode())),
    "bytes as Go prints them": lambda text: " ".join(map(str, text.encode())),
    "UTF-16, NUL in JSON": lambda text: json.dumps(text.encode("utf-16-le")[:-1].decode("latin-1"))[1:-1],
    "Base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "ISO-2022-JP": each(lambda c: f"\x1b(B{c}"),
    "mixed": mixed,
}  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ESCAPES)
def test_an_escaped_value_is_masked(name: str, value: str):
    content = f'{{"a": "{ESCAPES[name](value)}"}}'.encode()
    assert Mask([value]).bytes(content) == b'{"a": "%b"}' % MASKED


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ESCAPES)
def test_an_escaped_value_in_doubly_encoded_json_is_masked(name: str, value: str):
    content = json.dumps(json.dumps(["before", ESCAPES[name](value)]))
    masked = Mask([value]).text(content)
    assert "[secret]" in masked
    assert len(masked) < 50


def units(character: str) -> str:
    """Return the units of UTF-16 as many languages escape them, in upper case."""
    if character.isascii():
        return character
    return re.sub("....", lambda unit: f"\\u{unit[0]}", character.encode("utf-16-be").hex().upper())


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (PLAIN, each(lambda c: f"\\u{{{ord(c):x}}}")),  # JavaScript, Rust and Swift
        ("zoë-𝄞-1234567890", each(units)),
        ("<token>-1234567890", lambda v: v.replace("<", "&lt").replace(">", "&gt")),
        (PLAIN, lambda v: quopri.encodestring(("x" * 64 + v).encode()).decode()),
    ],
    ids=["braces", "surrogates", "HTML without semicolons", "quoted-printable, broken"],
)
def test_a_value_is_masked_in_rare_escapes(value: str, form: Escape):
    assert Mask([value]).text(form(value)).lstrip("x") == "[secret]"


def test_a_value_in_latin_1_is_masked_where_it_is_percent_encoded():
    value = "naïve-%7Efaçade-1234"
    content = quote(value, safe="", encoding="latin-1")
    assert Mask([value]).text(content) == "[secret]"
    raw = unquote_to_bytes(value.encode("latin-1"))
    assert Mask([value]).bytes(raw) == MASKED


def test_base64_of_the_json_of_a_value_is_masked():
    content = base64.b64encode(json.dumps({"authorization": VALUE}).encode())
    assert MASKED in Mask([VALUE]).bytes(content)


@pytest.mark.parametrize("depth", [3, 4, 12])
@pytest.mark.parametrize(
    ("escape", "first"),
    [(lambda text: text.replace("%", "%25"), "%"), (lambda text: text.replace("&", "&amp;"), "&")],
    ids=["percent", "HTML"],
)
def test_a_value_escaped_several_times_in_the_same_way_is_masked(escape: Escape, first, depth: int):
    content = "".join(f"%{ord(c):02X}" if first == "%" else f"&#{ord(c)};" for c in PLAIN)
    for _ in range(depth):
        content = escape(content)
    assert Mask([PLAIN]).text(content) == "[secret]"


def test_a_value_escaped_several_times_in_different_ways_is_masked():
    content = html.escape(quote(json.dumps(VALUE)[1:-1], safe=""))
    content = quote(json.dumps(html.escape(html.escape(content))), safe="")
    assert "[secret]" in Mask([VALUE]).text(content)


@pytest.mark.parametrize(
    "value", ["%41%42%43%44", "&#65;&#66;&#67;", "\\x41\\x42\\x43", "é<'\"&é" * 2]
)
@pytest.mark.parametrize(
    "form",
    [str, html.escape, quote, quote_plus, lambda v: json.dumps(v, ensure_ascii=False)[1:-1]],
)
def test_a_value_that_consists_mostly_of_escapes_is_masked_in_common_encodings(
    form: Escape, value: str
):
    assert Mask([value]).text(f"<{form(value)}>") == "<[secret]>"


def test_the_text_around_a_masked_utf_16_value_stays_intact():
    around = [f"{letter}".encode("utf-16-le") for letter in "ab"]
    content = around[0] + PLAIN.encode("utf-16-le") + around[1]
    masked = Mask([PLAIN]).bytes(content)
    assert masked.count(MASKED) == 1
    assert masked.replace(MASKED, b"") == b"".join(around)


def test_many_secrets_are_found_by_one_search():
    """A tenant may have hundreds, and its service sends megabytes: one search for each would take long."""
    forms = [random.Random(number).randbytes(40) for number in range(500)]
    content = bytes(range(256)) * 64 + forms[7]
    assert masking._likely(content, forms) == [forms[7]]


ALIGNED = list(product(range(3), (b"", b" and more"), (base64.b64encode, base64.urlsafe_b64encode)))
LINES: Mapping[str, Callable[[bytes], bytes]] = {
    "one line": lambda text: text,
    "MIME": lambda text: b"\r\n".join(text[at : at + 76] for at in range(0, len(text), 76)),
    "PEM": lambda text: b"\n".join(text[at : at + 64] for at in range(0, len(text), 64)),
    "JSON": lambda text: json.dumps(LINES["MIME"](text).decode())[1:-1].encode(),
    "JSON in JSON": lambda text: json.dumps(LINES["JSON"](text).decode())[1:-1].encode(),
    "escaped slashes": lambda text: text.replace(b"/", b"\\/"),
}


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("offset", "after", "encode"), ALIGNED)
def test_base64_in_lines_is_masked_at_every_alignment(offset, after, encode, value, lines):
    for before in range(offset, 140, 27):  # the line ends at another place of the value
        encoded = encode(b"x" * before + value.encode() + after)
        content = LINES[lines](encoded)
        masked = Mask([value]).bytes(b"<" + content + b">")
        rest = encode(b"x" * before)[:-4]
        assert MASKED in masked
        remaining = b"".join(masked.split()).replace(MASKED, b"")
        assert len(remaining) <= len(b"".join(content.split())) - len(value), masked
        assert masked.startswith(b"<" + LINES[lines](rest)[:60])


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "prefix",
    [
        b"=",
        b"\\",
        b"&",
        b"&#",
        b"\\n",
    ],
)
@pytest.mark.parametrize(
    "form",
    [str.encode, lambda v: base64.b64encode(v.encode()), lambda v: v.encode().hex().encode()],
)
def test_text_before_a_value_does_not_prevent_its_masking(prefix, form, value):
    masked = Mask([value]).bytes(prefix + form(value) + b"|")
    assert masked.endswith(MASKED + b"|")
    assert len(masked) <= len(prefix + MASKED + b"|")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize(
    "form", [json.dumps, lambda v: json.dumps(v).replace("/", "\\/"), lambda v: "\r\n".join(v)]
)
def test_a_value_in_utf_16_or_utf_32_text_is_masked(form, encoding, value):
    content = f"[{form(value)}]".encode(encoding)
    masked = Mask([value]).bytes(content)
    assert MASKED in masked
    assert len(masked) < len(MASKED) + 40


def test_all_of_many_values_are_masked():
    values = [f"value-{number:03}-{random.Random(number).random()}" for number in range(200)]
    contents = [ESCAPES[r"\x41"](values[0]), base64.b64encode(values[1].encode()).decode(), *values]
    assert Mask(values).text("|".join(contents)) == "|".join(["[secret]"] * len(contents))
    other = "value-000 value-1 value-" + "x" * 100
    assert Mask(values).text(other) == other
    for size in range(9):
        assert Mask(values).text("v" * size) == "v" * size


@pytest.mark.parametrize("known", ["longer than the secret, " * 2, "short: "])
@pytest.mark.parametrize("before", WIDE)
@pytest.mark.parametrize("form", WIDE)
def test_overlapping_values_are_masked_completely(form, before, known):
    """Who may store secrets knows `known` and tries out how the other value goes on."""
    joint = PLAIN[0].encode(before).removesuffix(PLAIN[0].encode(form))
    content = known.encode(before) + joint + PLAIN.encode(form)
    masked = Mask([known + PLAIN[0], PLAIN]).bytes(content)
    assert PLAIN[2:].encode(form) not in masked


@pytest.mark.parametrize("encoding", WIDE)
def test_a_content_with_too_many_secrets_is_refused(encoding: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(masking, "MAX_OCCURRENCES", 100)
    mask = Mask(["a" * length for length in range(8, 108)])
    assert mask.bytes(("a" * 8 + "|").encode(encoding) * 8).count(MASKED) == 8
    with pytest.raises(EgressResponseError, match="more than 100 secrets"):
        mask.bytes(("a" * 1000).encode(encoding))


@pytest.mark.parametrize(
    "content",
    [
        b"\\" * 2**20,
        (b"\\" * 1000 + b"ud83d") * 2**10,
        b"&#" * 2**19,
        b"&" + b"a" * 2**20,
        b"=\r" * 2**19,
        b"=\r\n" * 2**18,
        b"\\u{" + b"0" * 2**20,
    ],
)
def test_no_content_makes_masking_slow(content: bytes):
    assert Mask(VALUES).bytes(content) == content


def test_a_secret_between_too_many_line_breaks_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(masking, "MAX_ESCAPES", 100)
    content = b"x \n" * 101
    assert Mask([PLAIN]).bytes(content) == content
    with pytest.raises(EgressResponseError, match="more than 100 escapes"):
        Mask([PLAIN]).bytes(PLAIN.encode() + content)
