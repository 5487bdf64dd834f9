"""What the official MCP conformance suite expects of tools whose calls become tasks (SEP-2663).

Names, arguments and schemas are the suite's, to the letter.
"""

import asyncio
from typing import Annotated

from pydantic import Field

from mcphost.sdk import Context, Form, ToolAnnotations, ToolError, tool

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
JOB_SECONDS = 1
LONGEST_SECONDS = 60


class Name(Form):
    name: str


class Confirmation(Form):
    confirm: bool


@tool(annotations=READ_ONLY, tasks="always", time_limit=LONGEST_SECONDS + 30)
async def slow_compute(
    seconds: Annotated[int, Field(ge=0, le=LONGEST_SECONDS)], label: str = ""
) -> str:
    """Computes for some seconds."""
    await asyncio.sleep(seconds)
    return f"{label or 'It'} was computed in {seconds} seconds."


@tool(annotations=READ_ONLY, tasks="required")
async def failing_job() -> str:
    """Fails after a while, with a result."""
    await asyncio.sleep(JOB_SECONDS)
    raise ToolError("This job intentionally returns an error for testing")


@tool(annotations=READ_ONLY, tasks="always")
async def protocol_error_job(ctx: Context) -> str:
    """Fails with an error of the protocol: it needs a capability that no client has."""
    ctx.require("sampling.nothing_has_this")
    return "The client has what nothing has."


# The first tool of the list. The suite calls that one without arguments, as a client without
# capabilities, and wants a result: the required argument makes it the one about what is missing.
# Not read-only, so that the rounds which take in answers are claimed.
@tool(
    annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False),
    tasks="always",
)
async def confirm_delete(ctx: Context, filename: str) -> str:
    """Asks for a confirmation. There is no file, and none is deleted."""
    answer = await ctx.elicit("confirm", f"Delete {filename}?", Confirmation)
    return f"Deleting {filename} was {'confirmed' if answer.confirm else 'refused'}."


@tool(annotations=READ_ONLY, tasks="always")
async def multi_input(ctx: Context) -> str:
    """Asks for two things side by side."""
    user, answer = await asyncio.gather(
        ctx.elicit("user_name", "What is your name?", Name),
        ctx.elicit("confirm", "Please confirm", Confirmation),
    )
    return f"{user.name} {'confirmed' if answer.confirm else 'refused'}."


@tool(annotations=READ_ONLY, tasks="slow")
async def test_tool_with_task(ctx: Context) -> str:
    """Asks for a name, and becomes a task once it has it."""
    user = await ctx.elicit("user_name", "What is your name?", Name)
    await ctx.become_task()
    return f"Hello, {user.name}!"
