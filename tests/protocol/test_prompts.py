"""Tests of the descriptions of prompts, and of the check of their arguments."""

import pytest

from mcphost.protocol.messages import response
from mcphost.protocol.prompts import PromptArgument, PromptListing, check_arguments, describe_prompt
from mcphost.protocol.results import cacheable, complete
from tests.wire import check_response

ARGUMENTS = (PromptArgument("code", "Code", "What to look at", required=True), PromptArgument("by"))


def test_a_prompt_listing_has_the_fields_of_the_specification() -> None:
    assert describe_prompt(PromptListing("greet")) == {"name": "greet"}
    icon = {"src": "https://example.com/a.png"}
    prompt = describe_prompt(PromptListing("review", "Review", "Looks at code", ARGUMENTS, (icon,)))
    assert prompt == {
        "name": "review",
        "title": "Review",
        "description": "Looks at code",
        "arguments": [
            {"name": "code", "title": "Code", "description": "What to look at", "required": True},
            {"name": "by", "required": False},
        ],
        "icons": [icon],
    }
    result = complete({"prompts": [prompt]}, {"name": "mcphost", "version": "1"})
    check_response("prompts/list", response(1, cacheable(result, 0, "private")))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"code": ""}, None),
        ({"code": "x", "by": "me"}, None),
        ({}, "params.arguments is missing code"),
        (
            {"code": "x", "lang": "y"},
            "params.arguments has 'lang', which the prompt does not take (code, by)",
        ),
        (
            dict.fromkeys("abcde", ""),
            "params.arguments has 'a', 'b', 'c' and 2 more, which the prompt does not take (code, by)",
        ),
    ],
)
def test_prompt_arguments_are_compared_with_the_declared_ones(arguments, problem):
    assert check_arguments(ARGUMENTS, arguments) == problem


def test_an_unknown_argument_of_a_prompt_without_arguments_is_reported() -> None:
    assert "(none)" in (check_arguments((), {"x" * 99: ""}) or "")
