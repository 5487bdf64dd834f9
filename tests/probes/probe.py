"""Tools that misbehave, or do nothing, in ways that tests can watch."""

import asyncio
import threading
import time
from typing import Annotated, Any, Literal

from pydantic import Field

from mcphost.sdk import Context, ToolAnnotations, ToolError, resource, tool

READ_ONLY = ToolAnnotations(read_only_hint=True)

cancelled = asyncio.Event()
running = asyncio.Event()
release = threading.Event()
ran: list[str] = []


def reset() -> None:
    """Forget earlier tests. An asyncio event belongs to the loop that first waits for it."""
    global cancelled, running, release
    cancelled, running, release = asyncio.Event(), asyncio.Event(), threading.Event()
    ran.clear()


@tool(annotations=READ_ONLY)
async def echo(text: str) -> str:
    """Returns its text."""
    return text


@tool
async def write(text: Annotated[str, Field(json_schema_extra={"writeOnly": True})]) -> str:
    """Changes something: it is not read-only."""
    ran.append(text)
    return f"wrote {len(text)}"


@tool(annotations=READ_ONLY)
async def fail() -> str:
    """Raises."""
    raise RuntimeError("canary-of-the-traceback")


@tool(annotations=READ_ONLY)
async def refuse(reason: str = "no") -> str:
    """Fails on purpose, with words for the model."""
    raise ToolError(reason)


@tool(annotations=READ_ONLY)
async def add_prices(prices: list[Annotated[float, Field(multiple_of=0.01)]]) -> float:
    """Takes many numbers of which each is expensive to check."""
    return sum(prices)


@tool
async def hang() -> str:
    """Waits for ever."""
    running.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        cancelled.set()
        raise
    return "never"


@tool(annotations=READ_ONLY, time_limit=0.05)
async def late() -> str:
    """Takes longer than it may."""
    await asyncio.Event().wait()
    return "never"


@tool(annotations=READ_ONLY)
async def wait_until_told() -> str:
    """Waits until the test lets it go."""
    running.set()
    await asyncio.to_thread(release.wait, 10)
    return "released"


@tool(annotations=READ_ONLY)
def block() -> str:
    """A synchronous tool that blocks its thread."""
    release.wait(10)
    return "released"


@tool(annotations=READ_ONLY)
async def steps(ctx: Context, count: int = 3) -> str:
    """Reports progress and logs."""
    for number in range(1, count + 1):
        ctx.progress(number, count, f"step {number}")
        ctx.log("info", {"step": number})
    ctx.log("debug", "done")
    return "done"


@tool(annotations=READ_ONLY)
async def hundred(ctx: Context) -> str:
    """Reports progress a hundred times, from the third time on when the test lets it go."""
    for number in range(1, 101):
        ctx.progress(number, 100)
        if number == 2:
            await asyncio.to_thread(release.wait, 10)
    return "done"


@tool(annotations=READ_ONLY)
def threaded_steps(ctx: Context) -> str:
    """Reports progress from a thread."""
    for number in range(1, 4):
        ctx.progress(number, 3)
    return "done"


@tool(annotations=READ_ONLY)
async def flood(ctx: Context) -> str:
    """Sends far more than anybody reads, then waits for ever."""
    for number in range(400):
        ctx.progress(number, 400, "x" * 10_000)
    await hang()
    return "never"


@tool(annotations=READ_ONLY)
async def big(size: int) -> str:
    """Returns a long text."""
    return "x" * size


@tool(annotations=READ_ONLY, output_schema={"type": "object", "required": ["answer"]})
async def wrong() -> Any:
    """Returns what its output schema does not allow."""
    return {"question": 1}


@tool(annotations=READ_ONLY)
async def needs_sampling(ctx: Context) -> str:
    """Cannot do without a capability of the client's."""
    ctx.require("sampling")
    return "sampled"


@tool(
    annotations=READ_ONLY,
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
)
async def regional(region: str) -> str:
    """Mirrors an argument into a header."""
    return region


@tool(annotations=READ_ONLY)
async def stall() -> str:
    """Blocks the event loop, which no tool may do."""
    time.sleep(0.6)  # noqa: ASYNC251 - the very thing that is to be noticed
    return "stalled"


@tool(annotations=READ_ONLY)
async def announce(ctx: Context, uri: str) -> str:
    """Says that a resource can be read anew."""
    ctx.announce(uri)
    return "announced"


@tool(annotations=READ_ONLY)
def threaded_announce(ctx: Context, uri: str) -> str:
    """Says so from a thread."""
    ctx.announce(uri)
    return "announced"


@tool(annotations=READ_ONLY)
async def announce_list(ctx: Context, name: Literal["tools", "prompts", "resources"]) -> str:
    """Says that a list is to be asked for anew."""
    ctx.announce_list(name)
    return "announced"


@resource("probe://days/{day}")
async def day_of_the_probe(day: str) -> str:
    """A day, by its name."""
    return f"Nothing on {day}."


@tool
async def sign(ctx: Context, seconds: float = 20) -> str:
    """Has somebody open a link of the call, and waits for that."""
    await ctx.ask_url("page", "Sign here.", ctx.done_url("signed"))
    running.set()
    return "signed" if await ctx.wait_for("signed", seconds) else "not signed"
