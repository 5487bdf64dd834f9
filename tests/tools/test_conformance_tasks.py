"""The tools of the conformance suite whose calls become tasks behave as the suite expects."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.runtime.outcomes import Failed, FailureKind, InputRequired
from mcphost.testing import EVERYTHING, Tried, a_call, accept, in_memory, run_through
from tests.tools.shipped_tools import assert_listable, call, compiled, names

MODULES = ("conformance", "conformance_asking", "conformance_tasks")
SUPPORT = {
    "confirm_delete": "always",
    "failing_job": "required",
    "multi_input": "always",
    "protocol_error_job": "always",
    "slow_compute": "always",
    "test_tool_with_task": "slow",
}
# What the suite answers to whatever a task asks.
BOTH = accept(name="partial-1", confirm=True)


async def tried(
    name: str,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    tasks: bool = True,
) -> Tried:
    program = compiled(f"conformance_tasks.{name}").program
    call = a_call(arguments, EVERYTHING)
    return await run_through(program, call, answers or {}, in_memory(tasks=tasks))


@pytest.mark.parametrize("reference", names("conformance_tasks"))
def test_every_tool_is_listable(reference: str) -> None:
    assert_listable(compiled(reference))


def test_tools_become_tasks_as_the_suite_expects() -> None:
    found = {compiled(one).name: compiled(one).task_support for one in names("conformance_tasks")}
    assert found == SUPPORT
    assert compiled("conformance.greet").task_support == "never"


async def test_the_first_listed_tool_has_a_result_without_arguments() -> None:
    """Of all tools of the suite: one of its scenarios calls the first without arguments."""
    every = [one for module in MODULES for one in names(module, PrimitiveType.TOOL)]
    first = min(every, key=lambda one: compiled(one).name)
    assert compiled(first).name == "confirm_delete"
    outcome = await call(first)
    assert isinstance(outcome, Failed)
    assert outcome.error.kind is FailureKind.INVALID_ARGUMENTS


@pytest.mark.parametrize("tasks", [True, False])
async def test_slow_compute_takes_the_requested_number_of_seconds(tasks: bool) -> None:
    ended = await tried("slow_compute", {}, {"seconds": 0, "label": "instant"}, tasks=tasks)
    assert ended.text == "instant was computed in 0 seconds."


async def test_deletion_requires_confirmation() -> None:
    ended = await tried("confirm_delete", {"confirm": BOTH}, {"filename": "rt.txt"})
    assert ended.asked == (("confirm",),)
    assert ended.text == "Deleting rt.txt was confirmed."
    refused = {"confirm": accept(confirm=False)}
    ended = await tried("confirm_delete", refused, {"filename": "rt.txt"})
    assert ended.text == "Deleting rt.txt was refused."


@pytest.mark.parametrize(
    ("tasks", "rounds"), [(True, (("user_name",), ())), (False, (("user_name",),))]
)
async def test_a_tool_requests_a_name_before_its_call_becomes_a_task(
    tasks: bool, rounds: tuple[tuple[str, ...], ...]
) -> None:
    ended = await tried("test_tool_with_task", tasks=tasks)
    assert isinstance(ended.outcome, InputRequired)
    ended = await tried("test_tool_with_task", {"user_name": accept(name="Alice")}, tasks=tasks)
    assert ended.asked == rounds
    assert ended.text == "Hello, Alice!"
