"""Tests of `mcphost.testing`: trying a function is like calling it, without a server or a client."""

import pytest
from pydantic import BaseModel

from mcphost.runtime.outcomes import Failed, FailureKind, InputRequired
from mcphost.sdk import Context, prompt, resource, tool
from mcphost.testing import (
    EVERYTHING,
    MAX_ROUNDS,
    a_call,
    accept,
    in_memory,
    run_through,
    try_out,
)
from tests.kinds.rounds import program


class Color(BaseModel):
    color: str


@tool
async def paint(ctx: Context, what: str) -> str:
    """Ask for one colour, and then for another."""
    inside = (await ctx.elicit("inside", "Inside?", Color)).color
    outside = (await ctx.elicit("outside", "Outside?", Color)).color
    return f"A {what}, {inside} and {outside}."


ANSWERS = {"inside": accept(color="green"), "outside": accept(color="blue")}


async def test_try_out_runs_all_rounds_and_reports_their_input_requests() -> None:
    tried = await try_out(paint, {"what": "door"}, ANSWERS)
    assert tried.text == "A door, green and blue."
    assert tried.asked == (("inside",), ("outside",))


async def test_try_out_stops_at_an_unanswered_input_request() -> None:
    tried = await try_out(paint, {"what": "door"}, {"inside": accept(color="green")})
    assert isinstance(tried.outcome, InputRequired)
    assert tried.asked == (("inside",), ("outside",))
    with pytest.raises(TypeError, match="did not complete"):
        _ = tried.text


async def test_an_invalid_answer_is_requested_again_until_the_rounds_are_used_up() -> None:
    tried = await try_out(paint, {"what": "door"}, {"inside": accept(color=7)})
    assert tried.asked == (("inside",),) * MAX_ROUNDS


async def test_prompts_and_resources_can_be_tried_like_tools() -> None:
    @prompt
    async def greet(ctx: Context) -> str:
        return (await ctx.elicit("color", "Which?", Color)).color

    @resource("demo://color")
    async def color(ctx: Context) -> str:
        return (await ctx.elicit("color", "Which?", Color)).color

    for function in (greet, color):
        tried = await try_out(function, answers={"color": accept(color="red")})
        assert tried.asked == (("color",),)
        assert "red" in str(tried.outcome)


async def test_stored_values_last_as_long_as_their_ports() -> None:
    @tool
    async def count(ctx: Context) -> int:
        seen, revision = await ctx.store.get("count")
        assert await ctx.store.put("count", (seen or 0) + 1, revision)
        return (seen or 0) + 1

    outside = in_memory()
    assert (await try_out(count, ports=outside)).text == "1"
    assert (await try_out(count, ports=outside)).text == "2"
    assert (await try_out(count)).text == "1"


@tool(tasks="slow")
async def print_photo(ctx: Context) -> str:
    """Print in a task, after a step and before a question."""
    runs.append(ctx.round)
    await ctx.step("reserve", str)
    await ctx.become_task()
    color = (await ctx.elicit("color", "Which?", Color)).color
    return f"{color}, in round {ctx.round}"


runs: list[int] = []


@pytest.mark.parametrize(("tasks", "rounds"), [(True, 3), (False, 2)])
async def test_a_trial_continues_as_a_task_if_permitted(tasks: bool, rounds: int) -> None:
    runs.clear()
    answers = {"color": accept(color="red")}
    tried = await try_out(print_photo, answers=answers, ports=in_memory(tasks=tasks))
    assert tried.text == f"red, in round {rounds}"
    assert tried.asked == ((),) * (rounds - 2) + (("color",),)
    assert runs == list(range(1, rounds + 1))


async def test_a_client_without_a_capability_gets_the_missing_capability() -> None:
    call = a_call({"what": "door"}, capabilities={"sampling": EVERYTHING["sampling"]})
    tried = await run_through(program(paint), call, ANSWERS, in_memory())
    assert isinstance(tried.outcome, Failed)
    assert tried.outcome.error.kind is FailureKind.CAPABILITY_MISSING
