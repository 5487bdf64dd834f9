"""The tools and prompts of the conformance suite that request input behave exactly as the suite
expects."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.runtime.outcomes import Complete
from mcphost.testing import (
    EVERYTHING,
    Tried,
    a_call,
    accept,
    in_memory,
    model_answer,
    run_through,
)
from tests.tools.shipped_tools import assert_listable, compiled, names

ROOTS = {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}
ALICE = accept(name="Alice")

# A tool, its answers, the keys of each round, and its text.
CALLS: list[tuple[str, dict[str, Mapping[str, Any]], tuple[tuple[str, ...], ...], str]] = [
    ("request_state", {"confirm": accept(ok=True)}, (("confirm",),), "state-ok"),
    (
        "multiple_inputs",
        {"user_name": ALICE, "greeting": model_answer("Good day"), "client_roots": ROOTS},
        (("user_name", "greeting", "client_roots"),),
        "Good day Alice has 1 roots.",
    ),
    (
        "multi_round",
        {"step1": ALICE, "step2": accept(color="blue")},
        (("step1",), ("step2",)),
        "Alice likes blue.",
    ),
    (
        "capabilities",
        {"user_name": ALICE, "capital_question": model_answer("Paris")},
        (("user_name", "capital_question"),),
        "Hello, Alice! Paris",
    ),
]


async def tried(
    name: str,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
    arguments: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] = EVERYTHING,
) -> Tried:
    program = compiled(f"conformance_asking.{name}").program
    call = a_call(arguments, capabilities)
    return await run_through(program, call, answers or {}, in_memory())


@pytest.mark.parametrize("reference", names("conformance_asking"))
def test_every_tool_and_prompt_is_listable(reference: str) -> None:
    assert_listable(compiled(reference))


@pytest.mark.parametrize(("name", "answers", "keys", "text"), CALLS)
async def test_tools_request_input_and_answer_as_the_suite_expects(
    name: str, answers: dict[str, Any], keys: tuple[tuple[str, ...], ...], text: str
) -> None:
    ended = await tried(f"test_input_required_result_{name}", answers)
    assert ended.asked == keys
    assert ended.text == text


def test_one_tool_accepts_unrequested_input_responses() -> None:
    taking = [name for name in names("conformance_asking") if compiled(name).unasked]
    assert taking == ["conformance_asking.test_input_required_result_elicitation"]


async def test_the_prompt_requests_its_context() -> None:
    answers = {"user_context": accept(context="tests")}
    ended = await tried("test_input_required_result_prompt", answers)
    assert ended.asked == (("user_context",),)
    assert isinstance(ended.outcome, Complete)
    assert ended.outcome.result["messages"]
