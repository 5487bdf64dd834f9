"""The tools that the benchmark calls where some of them ask; the module's name has them published at `demo`."""

from pydantic import BaseModel

from mcphost.sdk import Context, ToolAnnotations, tool

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


class Sure(BaseModel):
    """The one question."""

    sure: bool


@tool(title="Echo", annotations=READ_ONLY)
async def echo(text: str) -> str:
    """Return the text it was given, as the demo's does."""
    return text


@tool
async def ask(ctx: Context, text: str) -> str:
    """Asks, and says the same again: as a tool that changes things, with all that is done for it."""
    answer = await ctx.elicit("sure", "Are you sure?", Sure)
    return text if answer.sure else ""


@tool(claims=False)
async def ask_unclaimed(ctx: Context, text: str) -> str:
    """The same, but that the round which takes in the answer is not claimed."""
    answer = await ctx.elicit("sure", "Are you sure?", Sure)
    return text if answer.sure else ""


@tool
async def ask_twice(ctx: Context, text: str) -> str:
    """Asks two questions, one after the other, and says the same again."""
    first = await ctx.elicit("sure", "Are you sure?", Sure)
    again = "Still sure?" if first.sure else "Sure now?"
    answer = await ctx.elicit("still-sure", again, Sure)
    return text if answer.sure else ""


@tool(tasks="always")
async def echo_later(text: str) -> str:
    """Say the same again, as a task."""
    return text


@tool(tasks="always")
async def ask_later(ctx: Context, text: str) -> str:
    """Asks, and says the same again, as a task."""
    answer = await ctx.elicit("sure", "Are you sure?", Sure)
    return text if answer.sure else ""
