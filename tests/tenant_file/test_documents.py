"""The YAML of a tenant's file: what is written is read again, and what is not YAML 1.2 without anchors is refused."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcphost.tenant_file.documents import MAX_BYTES, MAX_DEPTH, read, write
from mcphost.tenant_file.errors import InvalidFileError
from mcphost.tenant_file.file_format import read_file

TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("\n :#-'\"|>&*!%@`~0o17e.,[]{}?\t\x85\u2028\ufeff"),
    ),
    max_size=12,
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
        st.sampled_from(
            ["no", "on", "1e3", "0o17", "012", "0x1f", "12:30:45", "2020-01-01", "<<", "=", "~", ""]
        ),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_yaml_1_2_and_yaml_1_1_read_what_was_written(value: Any) -> None:
    text = write({"value": value})
    assert read(text.encode()).value == {"value": value}
    assert yaml.safe_load(text) == {"value": value}
    assert write(read(text.encode()).value) == text


def test_lines_of_text_are_written_as_lines_and_members_keep_their_order() -> None:
    text = write({"z": "def run():\n    return 1\n", "a": ["x", {"k": 1}]})
    assert text == "z: |\n  def run():\n      return 1\na:\n  - x\n  - k: 1\n"


def test_a_member_has_the_line_of_its_key_and_a_missing_one_that_of_the_member_around_it() -> None:
    document = read(b"a: 1\nb:\n  c:\n    - x\n    - y\n")
    lines = [("a",), ("b", "c"), ("b", "c", 1), ("b", "c", 1, "d"), ("b", "x", "y"), ("z",)]
    assert [document.line_of(path) for path in lines] == [1, 3, 5, 5, 2, 1]


def test_an_empty_file_has_no_value() -> None:
    assert read(b"").value is None
    assert read(b"# only a comment\n").value is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: &x 1\n", "line 2: b: Anchors and aliases are not supported."),
        ("a: 1\nb: [&x 1, *x]\n", "line 2: b.0: Anchors and aliases are not supported."),
        ("a: *x\n", "line 1: a: Anchors and aliases are not supported."),
        ("a: 1\n<<: {b: 2}\n&k c: 1\n", "line 3: A key must be a plain text."),
        ("a: !!int 1\n", "line 1: a: Tags are not supported."),
        ("a: !!python/object:os.system x\n", "line 1: a: Tags are not supported."),
        ("!t a: 1\n", "line 1: A key must be a plain text."),
        ("[a]: 1\n", "line 1: A key must be a plain text."),
        ("a: 1\nb: 2\na: 3\n", "line 3: The key 'a' is there twice."),
        ("a: 1\n--- \nb: 2\n", "line 2: The file has more than one document."),
        ("a:\n  - .nan\n", "line 2: a.0: JSON has no number .nan."),
        ("a: -.inf\n", "line 1: a: JSON has no number -.inf."),
        ("a: 1e999\n", "line 1: a: JSON has no number 1e999."),
        ("a: 18446744073709551616\n", "line 1: a: JSON has no number 18446744073709551616."),
        (f"a: {'9' * 5000}\n", f"line 1: a: JSON has no number {'9' * 40}."),
        ("a: 'x\n\n\n", "line 4: This is not YAML: found unexpected end of stream."),
        ("a: b: c\n", "line 1: This is not YAML: mapping values are not allowed in this context."),
        (
            "[" * (MAX_DEPTH + 1),
            f"line 1: {'.'.join('0' * MAX_DEPTH)}: The file is nested deeper than {MAX_DEPTH} levels.",
        ),
    ],
)
def test_what_is_not_a_plain_document_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidFileError) as refusal:
        read(text.encode())
    assert str(refusal.value) == message


@pytest.mark.parametrize("data", [b"a: \xff\n", b"a: \x00\n", b"a: \x07\n"])
def test_bytes_that_yaml_does_not_allow_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidFileError, match="This is not YAML"):
        read(data)


def test_a_file_that_is_too_large_is_refused_unread() -> None:
    with pytest.raises(InvalidFileError, match="larger than 16 MiB"):
        read(b"[" * (MAX_BYTES + 1))


def test_a_file_with_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcphost.tenant_file.documents.MAX_VALUES", 10)
    assert read(b"[1, 2, 3, 4, 5, 6, 7, 8, 9]").value == list(range(1, 10))
    with pytest.raises(InvalidFileError, match="more than 10 values"):
        read(b"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")


def test_problems_of_members_with_long_names_are_short() -> None:
    members = "".join(f"    other{number}: 1\n" for number in range(2000))
    text = (
        f"format: 1\ntools:\n  ? {'n' * 100_000}\n  :\n    kind: http\n    config: {{}}\n{members}"
    )
    with pytest.raises(InvalidFileError) as refused:
        read_file(read(text.encode()))
    assert len(refused.value.problems) == 1000
    assert all(len(problem.path) == 300 for problem in refused.value.problems)


def test_lines_of_deep_members_are_those_of_the_member_around_them() -> None:
    depth = 40
    document = read(b"".join(b"%sa:\n" % (b" " * level) for level in range(depth)))
    assert [document.line_of("a" * level) for level in (1, 16, 17, depth)] == [1, 16, 16, 16]
    assert len(document.lines) == 17


def test_problems_have_no_characters_that_a_terminal_obeys() -> None:
    with pytest.raises(InvalidFileError) as refused:
        read_file(read(b'format: 1\n"\\e[2J\\u202e": 1\nsecrets: {"\\e[2J": {}, key: {}}\n'))
    assert all(line.isprintable() for line in str(refused.value).splitlines())
    assert [problem.path for problem in refused.value.problems] == [
        "\\x1b[2J\\u202e",
        "secrets.\\x1b[2J",
    ]
