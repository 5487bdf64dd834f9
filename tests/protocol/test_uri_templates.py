"""Tests of URI templates: which are valid, and which values match a URI."""

import re
from collections.abc import Mapping
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mcphost.protocol.uri_positions import UriPositions
from mcphost.protocol.uri_templates import MAX_VARIABLES, UriTemplate
from mcphost.protocol.uris import MAX_LENGTH, normalize
from tests.work_counts import Work

RESERVED = ":/?#[]@!$&'()*+,;="


def written(text: str, values: Mapping[str, str]) -> str:
    """Expand a template by RFC 6570, sections 3.2.2, 3.2.3 and 3.2.8."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", quote(value, safe=""))
        text = text.replace(f"{{+{name}}}", quote(value, safe=RESERVED))
    head, mark, names = text.partition("{?")
    if not mark:
        return head
    pairs = [f"{n}={quote(values[n], safe='')}" for n in names[:-1].split(",") if n in values]
    return head + ("?" if pairs else "") + "&".join(pairs)


@pytest.mark.parametrize(
    ("text", "uri", "values"),
    [
        ("docs:{page}", "docs:a%20b%2Fc", {"page": "a b/c"}),
        ("docs:{page}", "docs:%C3%A9", {"page": "é"}),
        ("docs:{page}", "docs:", None),
        ("docs:{page}", "docs:a?b", None),
        ("docs:{page}", "docs:%FF", None),
        ("docs:{page}", "docs:a%00", None),
        ("docs:{page}", "docs:%2e%2e", None),
        ("docs:{page}", "docs:..%2Fsecret", None),
        ("docs:{page}", "docs:a%5C..", None),
        ("docs:{page}", "docs:a..b", {"page": "a..b"}),
        ("docs:{page}", "docs:" + "x" * MAX_LENGTH, None),
        ("test://template/{id}/data", "test://template/123/date", None),
        ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
        ("file:///{+path}", "file:///a/..%2fb", None),
        ("file:///{+path}", "file:////etc/passwd", None),
        ("file:///{+path}", "file:///%2Fetc/passwd", None),
        ("docs://{+path}", "docs:///etc/passwd", None),
        ("docs:{page}", "docs:%5Cserver%5Cshare", None),
        ("docs:{folder}/{page}", "docs:a/%2Fetc", None),
        ("docs://host{+path}", "docs://host/a/b", {"path": "/a/b"}),
        ("s:{q}{?of}", "s:a?of=/b", {"q": "a", "of": "/b"}),
        ("a:{x}a{y}a", "a:aaab", None),
        ("a:{x}2F", "a:b%2F", None),
        ("a:{x}a{y}a", "a:aaaaa", {"x": "aa", "y": "a"}),
        ("s:{q}{?of,to}", "s:a?", None),
        ("s:{q}{?of,to}", "s:a?to=1%262&of=x", {"q": "a", "to": "1&2", "of": "x"}),
        ("s:{q}{?of,to}", "s:a?of=", {"q": "a", "of": ""}),
        ("s:{q}{?of,to}", "s:a?of=1&of=2", None),
        ("s:all{?of}", "s:all?of=/..", None),
        ("s:all{?of}", "s:all", {}),
    ],
)
def test_a_template_extracts_the_values_of_a_matching_uri(
    text: str, uri: str, values: dict[str, str] | None
) -> None:
    assert UriTemplate(text).match(uri) == values


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("docs:all", "no {variable}"),
        ("docs:{page", "without its }"),
        ("docs:{a{b}}", "without its"),
        ("docs:{a}{b}", "nothing between"),
        ("docs:{a}/{a}", "twice"),
        ("docs:{}", "an expression is"),
        ("docs:{a-b}", "an expression is"),
        ("docs:{a:3}", "an expression is"),
        ("docs:{+}", "an expression is"),
        ("docs:x{?a,}", "an expression is"),
        ("docs:{?a}/b", "elsewhere than at its end"),
        ("docs:x?y{?a}", "before its {?"),
        ("{scheme}:a", "does not begin with a scheme"),
        ("/docs/{a}", "does not begin with a scheme"),
        ("docs:a b/{a}", "expands to an invalid URI: the URI has ' '"),
        ("docs:../{a}", "expands to an invalid URI: the URI's path has"),
        ("docs:%7e/{a}", "expands to an invalid URI: the URI is not normalized; use docs:~/x"),
        (
            "docs:" + "/".join(f"{{v{n}}}" for n in range(MAX_VARIABLES + 1)),
            f"more than {MAX_VARIABLES}",
        ),
        ("docs:{a}" + "x" * MAX_LENGTH, "more than 2048 characters"),
    ],
)
def test_an_invalid_template_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        UriTemplate(text)
    assert problem in str(refused.value)


TEMPLATES = ("docs:{a}", "docs:{a}/{b}", "docs://host/{+a}", "docs:x/{a}/y{?b,c}", "docs:{a}?b={b}")
VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.sampled_from(TEMPLATES), st.dictionaries(st.sampled_from("abc"), VALUES))
@example("docs:{a}", {"a": "%2F"})
@example("docs:{a}", {"a": "..\\x"})
@example("docs://host/{+a}", {"a": "a/é?b#c"})
def test_values_written_into_a_template_are_read_back(text: str, values: dict[str, str]) -> None:
    template = UriTemplate(text)
    values = {name: values.get(name, "x") for name in template.variables}
    # `{+name}` copies percent-encodings of a value unchanged, and they are decoded when read.
    assume("+" not in text or "%" not in values["a"])
    try:
        asked = normalize(written(text, values))
    except ValueError:
        assert not {".", "..", "[", "]"}.isdisjoint(re.split(r"/|([\[\]])", values["a"]))
        return
    feared = any("\0" in v or ".." in re.split(r"[/\\]", v) for v in values.values())
    inside = set(template.variables) - template.optional
    feared = feared or any(values[name].startswith(("/", "\\")) for name in inside)
    assert template.match(asked) == (None if feared else values)


LETTERS = st.text("abcX%2Fe./?&=#[]:@é\0", max_size=30)


@given(st.text("ab{}+?,/:&", max_size=20), LETTERS)
def test_any_text_is_a_valid_template_or_refused(text: str, uri: str) -> None:
    try:
        template = UriTemplate("a:" + text)
    except ValueError:
        return
    values = template.match("a:" + uri)
    assert values is None or values.keys() <= set(template.variables)


NARROW = r"[^/?#&\[\]]+"


@given(
    st.lists(st.tuples(st.booleans(), st.text("ab/?", min_size=1, max_size=3)), max_size=3),
    st.booleans(),
    st.text("ab/?", max_size=16),
)
@example([(False, "a"), (False, "a")], False, "aaaaa")
@example([(True, "/"), (False, "b")], True, "a/a/bb")
@example([], True, "/a")
def test_of_several_matches_of_a_uri_earlier_variables_take_the_longest_value(between, last, uri):
    """The result is that of a regular expression, which can take exponential time where this does
    not."""
    between = [*between, (last, "")]
    text = "".join(f"{{{'+' if w else ''}v{n}}}{then}" for n, (w, then) in enumerate(between))
    pattern = "".join(f"({'.+' if w else NARROW}){re.escape(then)}" for w, then in between)
    found = re.fullmatch(f"a:{pattern}", f"a:{uri}")
    expected = {f"v{n}": value for n, value in enumerate(found.groups())} if found else None
    befores = (":", *(then for _, then in between))
    if any(
        value.startswith("/") and before.endswith(("/", ":"))
        for before, value in zip(befores, (expected or {}).values(), strict=False)
    ):
        expected = None
    assert UriTemplate(f"a:{text}").match(f"a:{uri}") == expected


def test_precomputed_positions_of_a_uri_match_several_templates() -> None:
    positions = UriPositions("a:x/y?z=1")
    templates = ["a:{+all}", "a:{one}", "a:{one}/{+two}", "a:{one}/{two}{?z}", "a:{one}/{two}{?w}"]
    assert [UriTemplate(text).match_positions(positions) for text in templates] == [
        {"all": "x/y?z=1"},
        None,
        {"one": "x", "two": "y?z=1"},
        {"one": "x", "two": "y", "z": "1"},
        None,
    ]


def test_matching_the_worst_template_and_uri_takes_linear_time() -> None:
    """Counts executed lines, not seconds: backtracking would take longer than a test can wait."""
    most = UriTemplate("a:" + "a".join(f"{{v{n}}}" for n in range(MAX_VARIABLES)) + "b")
    few = _lines(lambda: most.match("a:" + "a" * 400 + "b"))
    assert _lines(lambda: most.match("a:" + "a" * 800 + "b")) < 2.5 * few


def _lines(act) -> int:
    with Work() as work:
        act()
    return work.steps
