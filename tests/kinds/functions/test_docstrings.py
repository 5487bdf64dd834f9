"""A docstring describes the function and its parameters, and none of its text is lost."""

from inspect import cleandoc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.kinds.functions.docstrings import Docstring

GOOGLE = """Look up the time in a zone.

    Use this first.

    Args:

        zone: An IANA name
            such as Europe/Oslo.
        when (str | None, optional): An ISO time: now if left out.

        **more: Ignored.

    Returns:
        The time.
    """
NUMPY = """Look up the time in a zone.

    Use this first.

    Parameters
    ----------
    zone : str
        An IANA name
        such as Europe/Oslo.
    when : str, optional
        An ISO time: now if left out.
    more
        Ignored.

    Returns
    -------
    dict
        The time.
    """
SPHINX = """Look up the time in a zone.

    Use this first.

    :param str zone: An IANA name
        such as Europe/Oslo.
    :param when: An ISO time: now if left out.
    :type when: str
    :param more: Ignored.
    :returns: The time.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_parameters_are_described_and_the_remaining_text_is_the_description(text: str) -> None:
    docstring = Docstring(cleandoc(text))
    assert docstring.take("zone") == "An IANA name such as Europe/Oslo."
    assert docstring.take("when") == "An ISO time: now if left out."
    assert docstring.take("other") == ""
    assert "more" in docstring.rest
    assert docstring.take("more") == "Ignored."
    assert docstring.take("more") == ""
    rest = docstring.rest
    assert rest.startswith("Look up the time in a zone.\n\nUse this first.\n\n")
    assert "The time." in rest
    assert not any(word in rest for word in ("Args", "Parameters", "param", "type", "zone:", "now"))


ENTRIES = (
    "    zone: {}",
    "    zone -- {}",
    "    zone - {}",
    "    zone — {}",
    "    `zone` (str): {}",
    "    - zone: {}",
    "    * zone (str, optional): {}",
    "- zone: {}",
    "- zone -- {}",
    "* `zone`: {}",
    "- **zone**: {}",
    "- **zone:** {}",
    "- **zone** (list[tuple(str)]) \u2013 {}",
    "• zone: {}",
)
HEADINGS = (
    *("Args:", "args:", "Parameters:", "**Args:**", "**Args**:", "**Parameters**", "*Args:*"),
    *("__Args:__", "# Args", "### Parameters:", "Keyword Args:", "Inputs:"),
)


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_entries_may_be_written_as_lists_with_dashes_and_below_markdown(heading, entry) -> None:
    first, second = entry.format("An IANA name:"), entry.replace("zone", "when").format("A time.")
    text = (
        f"Look up.\n\n{heading}\n\n{first}\n      such - as Oslo.\n\n{second}\n\nReturns:\n    It."
    )
    docstring = Docstring(text)
    assert docstring.take("zone") == "An IANA name: such - as Oslo."
    assert docstring.take("when") == "A time."
    assert docstring.rest == "Look up.\n\nReturns:\n    It."


@pytest.mark.parametrize(
    "entry",
    [
        "@param zone {}", "@param zone: {}", "@param {{string}} zone - {}", "@param [zone] {}",
        "@arg zone -- {}", ":arg zone: {}", ":parameter str zone: {}", ":keyword zone: {}",
    ],
)  # fmt: skip
def test_entries_may_begin_with_other_field_names(entry: str) -> None:
    text = f"Look up.\n\n{entry.format('An IANA name')}\n    such as Oslo.\n@type zone: str\n@returns The time."
    docstring = Docstring(text)
    assert docstring.take("zone") == "An IANA name such as Oslo."
    assert docstring.rest == "Look up.\n\n@returns The time."


def test_a_list_below_an_entry_belongs_to_it() -> None:
    docstring = Docstring(
        "Args:\n- mode: One of\n  - fast: no check\n  - slow: a check\n- n: How many."
    )
    assert docstring.take("mode") == "One of - fast: no check - slow: a check"
    assert docstring.take("n") == "How many."
    assert docstring.rest == ""


@pytest.mark.parametrize(
    "text",
    [
        "A list:\n- zone: not below a heading",
        "Args\n    zone: a heading has a colon, or is one of Markdown",
        "**Args\n    zone: a mark that does not end",
        "The @param zone in a sentence.",
        "Args:\nzone - not indented",
        "Args:\n    zone-name: of two words",
    ],
)
def test_text_that_only_looks_like_an_entry_stays(text: str) -> None:
    docstring = Docstring(text)
    assert docstring.take("zone") == ""
    assert docstring.rest == text


def test_an_unused_entry_stays_below_its_heading() -> None:
    docstring = Docstring("A.\n\nArgs:\n    a: One.\n    b: Two.\n")
    docstring.take("a")
    assert docstring.rest == "A.\n\nArgs:\n    b: Two."


@pytest.mark.parametrize(
    "text",
    [
        "One line.",
        "",
        "Notes:\n    a: b",
        "Args:\nzone: not indented",
        "Args:\n    one text without a name\n",
        "## Args\n- a: b",
        "Raises:\n    ValueError: if so.\n\n\nExample::\n\n    a: b",
        "Parameters\n----------",
        "Parameters\n----------\n\n  indented",
        "A table\n-------\na : b",
    ],
)
def test_text_that_describes_no_parameter_stays(text: str) -> None:
    docstring = Docstring(text)
    docstring.take("zone")
    assert docstring.rest.split() == text.split()


@given(st.lists(st.sampled_from([*GOOGLE.splitlines(), *NUMPY.splitlines(), *SPHINX.splitlines()])))
def test_a_docstring_keeps_all_words_that_are_not_used_for_parameters(lines: list[str]) -> None:
    """But for headings: those without an entry are not written."""
    text = "\n".join(line[4:] for line in lines)
    kept = Docstring(text).rest.split()
    headings = {"Args:", "Parameters", "----------"}
    assert [w for w in kept if w not in headings] == [w for w in text.split() if w not in headings]


def test_an_entry_for_several_parameters_stays() -> None:
    docstring = Docstring("Parameters\n---\na : int\n    One.\nb, c : int\n    Both.\nd\n    Four.")
    assert [docstring.take(name) for name in "abcd"] == ["One.", "", "", "Four."]
    assert docstring.rest == "Parameters\n---\nb, c : int\n    Both."


@pytest.mark.parametrize(
    "line",
    [
        *(
            "    a%s b",
            ":param a%s b",
            "a%s b",
            "    a (%s b",
            ":type a%s b",
            "- a%s b",
            "@param %s b",
        ),
        *("    - %s b", "**Args%s b"),
    ],
)
def test_long_lines_are_read_in_linear_time(line: str) -> None:
    """In quadratic time this would take longer than the limit of a test."""
    for filler in (" ", "(", "a ", "*"):
        text = f"Args:\n    a: b\n{line % (filler * 200_000)}"
        Docstring(text).take("a")
