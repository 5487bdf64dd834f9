"""What the conformance suite expects of tools and prompts that ask, to the letter."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.runtime.outcomes import Complete, InputRequest, InputRequired
from mcphost.testing import (
    EVERYTHING,
    Tried,
    a_call,
    accept,
    in_memory,
    model_answer,
    run_through,
)
from tests.tools.shelf import assert_listable, compiled, names

NAME = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
ROOTS = {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}
ALICE = accept(name="Alice")

# A tool, its answers, the keys of each round, and its text.
CALLS: list[tuple[str, dict[str, Mapping[str, Any]], tuple[tuple[str, ...], ...], str]] = [
    ("elicitation", {"user_name": ALICE}, (("user_name",),), "Hello, Alice!"),
    ("sampling", {"capital_question": model_answer("Paris")}, (("capital_question",),), "Paris"),
    ("list_roots", {"client_roots": ROOTS}, (("client_roots",),), "Roots: file:///test/root"),
    ("request_state", {"confirm": accept(ok=True)}, (("confirm",),), "state-ok"),
    ("tampered_state", {"confirm": accept(ok=True)}, (("confirm",),), "state-ok"),
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


async def asked(name: str, *arguments: Any, **others: Any) -> list[InputRequest]:
    outcome = (await tried(name, *arguments, **others)).outcome
    assert isinstance(outcome, InputRequired), outcome
    return list(outcome.requests)


@pytest.mark.parametrize("reference", names("conformance_asking"))
def test_everything_can_be_listed(reference: str) -> None:
    assert_listable(compiled(reference))


@pytest.mark.parametrize(("name", "answers", "keys", "text"), CALLS)
async def test_it_asks_and_answers_as_the_suite_wants(
    name: str, answers: dict[str, Any], keys: tuple[tuple[str, ...], ...], text: str
) -> None:
    ended = await tried(f"test_input_required_result_{name}", answers)
    assert ended.asked == keys
    assert ended.text == text


def test_one_tool_takes_answers_that_nobody_asked_for() -> None:
    taking = [name for name in names("conformance_asking") if compiled(name).unasked]
    assert taking == ["conformance_asking.test_input_required_result_elicitation"]


async def test_the_questions_are_the_suites_to_the_letter() -> None:
    [name] = await asked("test_input_required_result_elicitation")
    assert (name.method, name.params["message"]) == ("elicitation/create", "What is your name?")
    assert name.params["requestedSchema"] == NAME
    [capital] = await asked("test_input_required_result_sampling")
    assert capital.method == "sampling/createMessage"
    assert capital.params["maxTokens"] == 100
    [roots] = await asked("test_input_required_result_list_roots")
    assert (roots.method, roots.params) == ("roots/list", {})


async def test_only_what_the_client_can_do_is_asked() -> None:
    [one] = await asked("test_input_required_result_capabilities", capabilities={"sampling": {}})
    assert one.method == "sampling/createMessage"


async def test_the_prompt_asks_for_its_context() -> None:
    answers = {"user_context": accept(context="tests")}
    ended = await tried("test_input_required_result_prompt", answers)
    assert ended.asked == (("user_context",),)
    assert isinstance(ended.outcome, Complete)
    assert ended.outcome.result["messages"]


async def test_defaults_are_in_every_field() -> None:
    [form] = await asked("test_elicitation_sep1034_defaults")
    fields = form.params["requestedSchema"]["properties"]
    told = {name: (field["type"], field["default"]) for name, field in fields.items()}
    assert told == {
        "name": ("string", "John Doe"),
        "age": ("integer", 30),
        "score": ("number", 95.5),
        "status": ("string", "active"),
        "verified": ("boolean", True),
    }
    assert fields["status"]["enum"] == ["active", "inactive", "pending"]
    ended = await tried("test_elicitation_sep1034_defaults", {"defaults": accept()})
    assert ended.text.startswith("Elicitation completed: accept")


async def test_choices_are_offered_in_every_way() -> None:
    [form] = await asked("test_elicitation_sep1330_enums")
    fields = form.params["requestedSchema"]["properties"]
    assert list(fields) == [
        "untitledSingle",
        "titledSingle",
        "legacyEnum",
        "untitledMulti",
        "titledMulti",
    ]
    assert len(fields["legacyEnum"]["enumNames"]) == len(fields["legacyEnum"]["enum"])
    answers = {"enums": accept(untitledSingle="option1", titledMulti=["value1", "value3"])}
    ended = await tried("test_elicitation_sep1330_enums", answers)
    assert "value3" in ended.text


async def test_what_older_clients_are_asked_works_here_as_well() -> None:
    message = {"message": "Please provide your information"}
    answers = {"user": accept(username="testuser", email="test@example.com")}
    assert "testuser" in (await tried("test_elicitation", answers, message)).text
    said = {"prompt": model_answer("This is a test response from the client")}
    ended = await tried("test_sampling", said, {"prompt": "Test prompt for sampling"})
    assert ended.text == "LLM response: This is a test response from the client"
