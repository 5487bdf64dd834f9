"""Tests of `mcphost.testing`: trying a function is like calling it, without a server or a client."""

import asyncio

import pytest
from pydantic import BaseModel

from mcphost.runtime.outcomes import Failed, FailureKind, InputRequired
from mcphost.sdk import Context, SyncContext, Text, ToolError, prompt, resource, tool
from mcphost.testing import (
    CANCEL,
    DECLINE,
    EVERYTHING,
    MOST_ROUNDS,
    a_call,
    accept,
    in_memory,
    model_answer,
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


async def test_it_goes_through_all_rounds_and_says_what_each_asked() -> None:
    tried = await try_out(paint, {"what": "door"}, ANSWERS)
    assert tried.text == "A door, green and blue."
    assert tried.asked == (("inside",), ("outside",))


async def test_it_stops_where_no_answer_is_given() -> None:
    tried = await try_out(paint, {"what": "door"}, {"inside": accept(color="green")})
    assert isinstance(tried.outcome, InputRequired)
    assert tried.asked == (("inside",), ("outside",))
    with pytest.raises(TypeError, match="did not complete"):
        _ = tried.text


@pytest.mark.parametrize(("answer", "word"), [(DECLINE, "declined"), (CANCEL, "dismissed")])
async def test_people_may_say_no(answer: dict[str, object], word: str) -> None:
    assert word in (await try_out(paint, {"what": "door"}, {"inside": answer})).text


async def test_an_answer_that_never_fits_is_asked_for_until_the_rounds_are_over() -> None:
    tried = await try_out(paint, {"what": "door"}, {"inside": accept(color=7)})
    assert tried.asked == (("inside",),) * MOST_ROUNDS


async def test_questions_side_by_side_are_one_round() -> None:
    @tool
    async def both(ctx: Context) -> str:
        colors = await asyncio.gather(
            ctx.elicit("inside", "Inside?", Color), ctx.elicit("outside", "Outside?", Color)
        )
        return ", ".join(one.color for one in colors)

    tried = await try_out(both, answers=ANSWERS)
    assert tried.text == "green, blue"
    assert tried.asked == (("inside", "outside"),)


async def test_models_answer_too() -> None:
    @tool
    async def summary(ctx: Context) -> str:
        said = await ctx.sample("summary", "Sum it up", max_tokens=9)
        assert isinstance(said.content, Text)
        return said.content.text

    assert (await try_out(summary, answers={"summary": model_answer("short")})).text == "short"


async def test_prompts_and_resources_are_tried_alike() -> None:
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


async def test_what_is_kept_lasts_as_long_as_its_outside() -> None:
    @tool
    async def count(ctx: Context) -> int:
        seen, revision = await ctx.store.get("count")
        assert await ctx.store.put("count", (seen or 0) + 1, revision)
        return (seen or 0) + 1

    outside = in_memory()
    assert (await try_out(count, ports=outside)).text == "1"
    assert (await try_out(count, ports=outside)).text == "2"
    assert (await try_out(count)).text == "1"


async def test_links_are_done_from_the_beginning_or_never() -> None:
    @tool
    async def pay(ctx: Context) -> str:
        assert ctx.done_url("paid").startswith("https://")
        return "paid" if await ctx.wait_for("paid", 1) else "not paid"

    assert (await try_out(pay)).text == "not paid"
    assert (await try_out(pay, ports=in_memory(done={"paid"}))).text == "paid"


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
async def test_a_trial_goes_on_as_a_task_if_it_may(tasks: bool, rounds: int) -> None:
    runs.clear()
    answers = {"color": accept(color="red")}
    tried = await try_out(print_photo, answers=answers, ports=in_memory(tasks=tasks))
    assert tried.text == f"red, in round {rounds}"
    assert tried.asked == ((),) * (rounds - 2) + (("color",),)
    assert runs == list(range(1, rounds + 1))


async def test_a_trial_of_a_blocking_function_goes_on_as_a_task() -> None:
    @tool
    def blocks(ctx: SyncContext) -> str:
        ctx.become_task()
        return f"round {ctx.round}"

    tried = await try_out(blocks)
    assert (tried.text, tried.asked) == ("round 2", ((),))


async def test_a_client_may_be_able_to_do_less() -> None:
    call = a_call({"what": "door"}, capabilities={"sampling": EVERYTHING["sampling"]})
    tried = await run_through(program(paint), call, ANSWERS, in_memory())
    assert isinstance(tried.outcome, Failed)
    assert tried.outcome.error.kind is FailureKind.CAPABILITY_MISSING


async def test_what_a_tool_refuses_is_read_as_text() -> None:
    @tool
    async def refuse() -> str:
        raise ToolError("not today")

    assert (await try_out(refuse)).text == "not today"
