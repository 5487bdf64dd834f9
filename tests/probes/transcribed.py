"""Tools for the recorded transcripts (tests/equivalence): one for each way in which a round can run and
end."""

import asyncio
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from mcphost.sdk import (
    Context,
    Image,
    Result,
    SyncContext,
    Text,
    ToolAnnotations,
    ToolError,
    tool,
)

READ_ONLY = ToolAnnotations(read_only_hint=True)
IDEMPOTENT = ToolAnnotations(idempotent_hint=True)
Secret = Annotated[str, Field(json_schema_extra={"writeOnly": True})]

running = asyncio.Event()
release = asyncio.Event()
did: list[str] = []


def reset() -> None:
    """Forget earlier tests. An asyncio event belongs to the loop that first waits for it."""
    global running, release
    running, release = asyncio.Event(), asyncio.Event()
    did.clear()


class Weather(BaseModel):
    """A structured result."""

    city: str
    degrees: int


class Account(BaseModel):
    """A structured result with a secret."""

    name: str
    password: Secret


class Colour(BaseModel):
    """A form with a choice."""

    colour: Literal["red", "green", "blue"]


class Size(BaseModel):
    """A form with a number."""

    size: Annotated[int, Field(ge=1, le=9)]


@tool(annotations=READ_ONLY)
async def text(text: str) -> str:
    """Return a text."""
    return text


@tool(annotations=READ_ONLY)
async def nothing() -> None:
    """Return nothing."""


@tool(annotations=READ_ONLY)
async def mapping(count: int = 2) -> dict[str, int]:
    """Return a dict."""
    return {f"key{number}": number for number in range(count)}


@tool(annotations=READ_ONLY)
async def structured(city: str) -> Weather:
    """Return a model."""
    return Weather(city=city, degrees=21)


@tool(annotations=READ_ONLY)
async def blocks() -> list[Text | Image]:
    """Return content blocks."""
    return [Text(text="Look:"), Image(data="iVBORw0KGgo=", mime_type="image/png")]


@tool(annotations=READ_ONLY)
async def error_result() -> Result:
    """Return a result that is an error."""
    return Result(content=[Text(text="It is broken.")], is_error=True)


@tool(annotations=READ_ONLY)
async def refuses(reason: str = "no") -> str:
    """Raise ToolError."""
    raise ToolError(reason)


@tool(annotations=READ_ONLY)
async def crashes() -> str:
    """Raise what no author expects."""
    raise RuntimeError("the insides of the tool")


@tool(annotations=READ_ONLY, output_schema={"type": "object", "required": ["answer"]})
async def misfits() -> Any:
    """Return what the output schema does not allow."""
    return {"question": 1}


@tool(annotations=READ_ONLY)
def in_thread(text: str) -> str:
    """Return a text from a thread."""
    return text


@tool(annotations=READ_ONLY)
async def suspends() -> str:
    """Suspend a few times, for one pass of the event loop each."""
    for _ in range(5):
        await asyncio.sleep(0)
    return "resumed"


@tool(annotations=READ_ONLY)
async def waits() -> str:
    """Wait until the test goes on."""
    running.set()
    await release.wait()
    return "released"


@tool
async def acts(text: str) -> str:
    """Act at once."""
    did.append(text)
    return f"did {text}"


@tool
async def acts_and_crashes() -> str:
    """Act, and raise."""
    did.append("something")
    raise RuntimeError("the insides of the tool")


@tool
async def acts_slowly() -> str:
    """Act when the test goes on."""
    running.set()
    await release.wait()
    did.append("something")
    return "did something"


@tool
async def takes_secret(name: str, password: Secret) -> str:
    """Take a secret argument."""
    return f"{name} has a password of {len(password)} characters"


@tool(annotations=READ_ONLY)
async def returns_secret(name: str) -> Account:
    """Return a secret."""
    return Account(name=name, password="the-password-of-the-account")


@tool(annotations=READ_ONLY)
async def reports(ctx: Context, count: int = 2) -> str:
    """Report progress, and log."""
    for number in range(1, count + 1):
        ctx.progress(number, count, f"step {number}")
        ctx.info({"step": number})
    ctx.debug("over")
    return "reported"


@tool(annotations=READ_ONLY)
async def reports_and_waits(ctx: Context) -> str:
    """Report progress, wait until the test goes on, and report again."""
    ctx.progress(1, 2)
    running.set()
    await release.wait()
    ctx.progress(2, 2)
    return "reported"


@tool(annotations=READ_ONLY)
async def reports_and_crashes(ctx: Context) -> str:
    """Report progress, and raise."""
    ctx.progress(1, 2)
    raise RuntimeError("the insides of the tool")


@tool(annotations=READ_ONLY, time_limit=0.05)
async def too_late() -> str:
    """Take longer than allowed."""
    await asyncio.Event().wait()
    return "never"


@tool(time_limit=0.05)
async def acts_too_late() -> str:
    """Begin to act, and take longer than allowed."""
    did.append("half of it")
    await asyncio.Event().wait()
    return "never"


@tool(annotations=READ_ONLY)
async def needs_sampling(ctx: Context) -> str:
    """Require a capability of the client."""
    ctx.require("sampling")
    return "sampled"


@tool(annotations=READ_ONLY)
async def with_context(ctx: Context) -> str:
    """Return values of the call."""
    return f"{ctx.now().isoformat()} {len(str(ctx.uuid()))}"


@tool(annotations=READ_ONLY)
async def asks(ctx: Context) -> str:
    """Ask one question."""
    return (await ctx.elicit("colour", "Which colour?", Colour)).colour


@tool
async def asks_and_acts(ctx: Context, what: str) -> str:
    """Ask one question, and act on the answer."""
    chosen = await ctx.elicit("colour", f"Which colour for {what}?", Colour)
    did.append(f"{what} {chosen.colour}")
    return f"{what} is {chosen.colour}"


@tool
async def asks_twice(ctx: Context) -> str:
    """Do a step, ask, do a step, and ask again."""
    await ctx.step("first", _do, "first")
    colour = (await ctx.elicit("colour", "Which colour?", Colour)).colour
    await ctx.step("second", _do, "second")
    size = (await ctx.elicit("size", "How large?", Size)).size
    return f"{colour} {size}"


@tool(annotations=READ_ONLY)
async def asks_side_by_side(ctx: Context) -> str:
    """Ask two questions at once."""
    colour, size = await asyncio.gather(
        ctx.elicit("colour", "Which colour?", Colour), ctx.elicit("size", "How large?", Size)
    )
    return f"{colour.colour} {size.size}"


@tool(annotations=READ_ONLY)
async def asks_for_page(ctx: Context) -> str:
    """Ask to open a page."""
    return (await ctx.ask_url("page", "Please sign in", "https://example.com/")).action


@tool(annotations=READ_ONLY)
def asks_in_thread(ctx: SyncContext) -> str:
    """Ask without `await`."""
    return ctx.elicit("colour", "Which colour?", Colour).colour


@tool(
    annotations=READ_ONLY,
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
)
async def regional(region: str) -> str:
    """Take an argument that is mirrored into a header."""
    return region


async def _do(what: str) -> None:
    did.append(what)
