"""Tools of bad authors. What happened to them is in `seen`."""

import asyncio
from itertools import count

from pydantic import BaseModel

from mcphost.sdk import Context, ToolAnnotations, tool

READ_ONLY = ToolAnnotations(read_only_hint=True)

seen: list[str] = []
turns = count()
swallowed = asyncio.Event()


def reset() -> None:
    """Forget earlier tests."""
    global turns, swallowed
    turns, swallowed = count(), asyncio.Event()
    seen.clear()


class Yes(BaseModel):
    """A form with next to nothing in it."""

    yes: bool


class Login(BaseModel):
    """A form that asks for what no form may ask for."""

    password: str


@tool(annotations=READ_ONLY)
async def same_key_in_turn(ctx: Context) -> str:
    """Asks different questions under one key, one after the other."""
    await ctx.elicit("again", "The first?", Yes)
    await ctx.elicit("again", "The second?", Yes)
    return "never"


@tool(annotations=READ_ONLY)
async def same_key_at_once(ctx: Context) -> str:
    """Asks different questions under one key, side by side."""
    first, second = (ctx.elicit("again", f"The {nth}?", Yes) for nth in ("first", "second"))
    await asyncio.gather(first, second)
    return "never"


@tool(annotations=READ_ONLY)
async def asks_in_a_step(ctx: Context) -> str:
    """Asks inside a step."""

    async def asking() -> str:
        await ctx.elicit("inner", "Inside?", Yes)
        return "never"

    return await ctx.step("outer", asking)


@tool(annotations=READ_ONLY)
async def asks_for_ever(ctx: Context) -> str:
    """Has always one question more."""
    for number in count():
        await ctx.elicit(f"question{number}", f"Question {number}?", Yes)
    return "never"


@tool(annotations=READ_ONLY)
async def asks_the_undeclared(ctx: Context, how: str) -> str:
    """Asks for what the client may not have."""
    if how == "form":
        await ctx.elicit("question", "Yes?", Yes)
    elif how == "url":
        await ctx.ask_url("question", "Look", "https://example.com/")
    elif how == "sampling":
        await ctx.sample("question", "Say something", max_tokens=1)
    else:
        await ctx.list_roots("question")
    return how


@tool(annotations=READ_ONLY)
async def swallows(ctx: Context) -> str:
    """Swallows its own unwinding and returns as if nothing had happened."""
    try:
        await ctx.elicit("question", "Yes?", Yes)
    except BaseException as end:  # noqa: BLE001 - what bad authors do
        seen.append(type(end).__name__)
    return "as if nothing had happened"


@tool(annotations=READ_ONLY, time_limit=0.2)
async def swallows_for_ever(ctx: Context) -> str:
    """Swallows everything, and asks again and again."""
    while True:
        try:
            await ctx.elicit("question", "Yes?", Yes)
        except BaseException:  # noqa: BLE001 - what bad authors do
            swallowed.set()


@tool(annotations=READ_ONLY)
async def leaves_tasks(ctx: Context, ask: bool) -> str:
    """Leaves a task behind, and asks or does not."""

    async def stays() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    left = asyncio.create_task(stays())
    await asyncio.sleep(0)
    if ask:
        await ctx.elicit("question", "Yes?", Yes)
    return f"left {left.done()}"


@tool(annotations=READ_ONLY)
async def asks_in_a_task_it_leaves(ctx: Context) -> str:
    """Has a question asked, and does not wait for the answer."""
    asking = asyncio.create_task(ctx.elicit("question", "Yes?", Yes))
    await asyncio.sleep(0)
    return f"done {asking.done()}"


@tool(annotations=READ_ONLY)
async def unstorable(ctx: Context) -> str:
    """Has a step whose result cannot be kept."""
    await ctx.step("makes-a-socket", object)
    return "never"


@tool(annotations=READ_ONLY)
async def large_step(ctx: Context, size: int) -> str:
    """Has a step whose result is more than a state can carry, and then asks."""
    kept = await ctx.step("reads-a-lot", lambda: "x" * size)
    await ctx.elicit("question", "Yes?", Yes)
    return str(len(kept))


@tool(annotations=READ_ONLY)
async def fickle(ctx: Context) -> str:
    """Asks something else each time under the same key."""
    await ctx.elicit("fickle", f"Is it {next(turns)}?", Yes)
    return "never"


@tool(annotations=READ_ONLY)
async def asks_for_secrets(ctx: Context) -> str:
    """Asks for a password in a form."""
    await ctx.elicit("login", "Please sign in", Login)
    return "never"


@tool(annotations=READ_ONLY)
async def bad_key(ctx: Context) -> str:
    """Asks under a key that is none."""
    await ctx.elicit("not a key!", "Yes?", Yes)
    return "never"


@tool(annotations=READ_ONLY)
async def cancels_itself() -> str:
    """Cancels the task that it runs in."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)
    return "never"


@tool(annotations=READ_ONLY)
async def fails_beside_a_question(ctx: Context) -> str:
    """Asks, and fails in a task beside it."""

    async def fails() -> None:
        raise RuntimeError("canary-of-the-failure")

    await asyncio.gather(ctx.elicit("question", "Yes?", Yes), fails())
    return "never"
