"""A made-up tool whose calls become tasks, for the pictures of all pages: each year takes another course."""

import asyncio
from typing import Annotated, Literal

from pydantic import Field

from mcphost.sdk import Context, Form, ToolAnnotations, ToolError, tool

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
FIRST_YEAR, CURRENT_YEAR = 2015, 2026
HOUR = 3600
"""How long the export of the current year works: longer than the pictures take."""


class Format(Form):
    format: Annotated[Literal["CSV", "JSON Lines"], Field(description="Format of the file")]


@tool(title="Export orders", annotations=READ_ONLY, tasks="always", retries=1, time_limit=HOUR)
async def export_orders(
    ctx: Context, year: Annotated[int, Field(description="Year of the orders.", ge=2000)]
) -> str:
    """Export the orders of a year to a file. The user is asked for the format."""
    if year > CURRENT_YEAR:
        raise ToolError(f"There are no orders of {year}.")
    if year < FIRST_YEAR:
        raise ConnectionError("The archive does not answer.")
    await ctx.step("count", count_orders)
    if year == CURRENT_YEAR:
        ctx.progress(1200, 4310, "1,200 of 4,310 orders")
        await asyncio.Event().wait()  # it works until its server is stopped
    answer = await ctx.elicit("format", f"Which format for the orders of {year}?", Format)
    return f"The orders of {year} are exported as {answer.format}."


async def count_orders() -> int:
    """A step before the question."""
    return 4310
