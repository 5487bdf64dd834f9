"""Tests of which icons may be served."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Icon

from mcphost.catalogue.icons import MAX_ICONS, MAX_SOURCE, check_icons

PNG = "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n").decode()


@pytest.mark.parametrize(
    "icon",
    [
        {"src": "https://example.com/a.png"},
        {"src": "https://[::1]:8443/a.png?b=c#d"},
        {"src": PNG},
        {
            "src": "https://example.com/a.svg",
            "mimeType": "image/svg+xml",
            "sizes": ["48x48", "any"],
            "theme": "dark",
        },
    ],
)
def test_an_icon_from_the_specification_is_accepted(icon: dict[str, Any]) -> None:
    assert check_icons([icon]) == []
    Icon.model_validate(icon)


@pytest.mark.parametrize(
    ("icon", "said"),
    [
        ("https://example.com/a.png", "object with `src`"),
        ({"src": "https://a/" + "a" * MAX_SOURCE}, "`src` must be a URL of at most"),
        ({"src": "http://example.com/a.png"}, "an https: URL or a data: URI"),
        ({"src": "javascript:alert(1)"}, "an https: URL or a data: URI"),
        ({"src": PNG + "\n"}, "not a data: URI in Base64"),
        ({"src": "data:image/svg+xml;base64,PHN2Zy8+"}, "one of these types"),
        ({"src": PNG.replace("png", "webp")}, "the content does not match its MIME type"),
        (
            {"src": PNG, "mimeType": "image/webp"},
            "`mimeType` differs from the type in the data: URI",
        ),
        ({"src": PNG, "mimeType": None}, "`mimeType` must be one of"),
        ({"src": PNG, "sizes": ["big"]}, "`sizes` must be a list"),
        ({"src": PNG, "onload": "alert(1)"}, "`onload` is not a field"),
    ],
)
def test_an_icon_that_may_not_be_served_is_refused_with_the_reason(icon: Any, said: str) -> None:
    (problem,) = check_icons([icon])
    assert said in problem
    assert problem.startswith("Icon 1: ")


def test_icons_must_be_a_list_of_at_most_eight() -> None:
    assert check_icons({"src": PNG}) == ["Icons must be a list of objects."]
    assert check_icons([{"src": PNG}] * MAX_ICONS) == []
    assert check_icons([{"src": PNG}] * (MAX_ICONS + 1)) == ["At most 8 icons are allowed."]


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
icons = st.lists(
    json
    | st.fixed_dictionaries({"src": st.just(PNG) | json}, optional={"theme": json, "sizes": json}),
    max_size=4,
)


@given(value=icons | json)
def test_any_value_that_passes_the_check_is_a_valid_icon_of_the_protocol(value: Any) -> None:
    if not check_icons(value):
        for icon in value:
            Icon.model_validate(icon)
