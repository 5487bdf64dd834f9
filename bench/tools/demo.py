"""The tools that the benchmark's asking calls call; the module's name has them published at `demo`."""

from pydantic import BaseModel

from mcphost.sdk import Context, tool


class Sure(BaseModel):
    """The one question."""

    sure: bool


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
