"""Tools, a prompt and resources that ask, in each of the ways there are; what was done is in `did`."""

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal
from urllib.parse import quote

from asgiref.sync import sync_to_async
from pydantic import BaseModel, Field

from mcphost.sdk import (
    AnswerFailedError,
    AnswerTimedOutError,
    Cancelled,
    Context,
    Declined,
    SyncContext,
    ToolAnnotations,
    current,
    current_sync,
    prompt,
    resource,
    tool,
)

READ_ONLY = ToolAnnotations(read_only_hint=True)
IDEMPOTENT = ToolAnnotations(idempotent_hint=True)

did: list[str] = []
kept: list[Context] = []
running = asyncio.Event()
release = asyncio.Event()


def reset() -> None:
    """Forget earlier tests. An event belongs to the loop that first waits for it."""
    global running, release
    running, release = asyncio.Event(), asyncio.Event()
    did.clear()
    kept.clear()


class Colour(BaseModel):
    """A form with a choice."""

    colour: Literal["red", "green", "blue"]


class Size(BaseModel):
    """A form with a number."""

    size: Annotated[int, Field(ge=1, le=9)]


@tool
async def paint(ctx: Context, what: str) -> str:
    """Asks one question and then does something, once."""
    chosen = await ctx.elicit("colour", f"Which colour for {what}?", Colour)
    did.append(f"{what} {chosen.colour}")
    return f"{what} is {chosen.colour}"


@tool
async def paint_sized(ctx: Context, what: str) -> str:
    """Asks two questions, one after the other, and then does something, once."""
    colour = (await ctx.elicit("colour", f"Which colour for {what}?", Colour)).colour
    size = (await ctx.elicit("size", "How large?", Size)).size
    did.append(f"{what} {colour} {size}")
    return f"{what} is {colour}, size {size}"


@tool
async def paint_slowly(ctx: Context, what: str) -> str:
    """Does what it was told to only when the test lets it."""
    chosen = await ctx.elicit("colour", f"Which colour for {what}?", Colour)
    did.append(f"{what} {chosen.colour}")
    running.set()
    await release.wait()
    return f"{what} is {chosen.colour}"


@tool(annotations=IDEMPOTENT)
async def repaint(ctx: Context, what: str) -> str:
    """The same for what may be done any number of times."""
    chosen = await ctx.elicit("colour", f"Which colour for {what}?", Colour)
    did.append(f"{what} {chosen.colour}")
    return f"{what} is {chosen.colour}"


@tool
async def move(ctx: Context, what: str, where: dict[str, Any], often: int = 1) -> str:
    """Asks, with arguments of every sort."""
    await ctx.elicit("sure", f"Move {what}?", Size)
    did.append(what)
    return f"{what} moved {often} times to {json.dumps(where)}"


@tool(answer_within=60)
async def soon(ctx: Context) -> str:
    """Waits a minute for its answer."""
    return (await ctx.elicit("size", "How large?", Size)).model_dump_json()


@tool(annotations=READ_ONLY)
async def survey(ctx: Context) -> str:
    """Says what was answered, whatever it was."""
    answer = await ctx.ask_form("colour", "Which colour?", Colour)
    content = None if answer.content is None else answer.content.model_dump()
    return json.dumps([answer.action, content])


@tool(annotations=READ_ONLY)
async def catches(ctx: Context) -> str:
    """Tells apart by exception how it was answered."""
    try:
        return (await ctx.elicit("colour", "Which colour?", Colour)).colour
    except Declined:
        return "declined"
    except Cancelled:
        return "cancelled"


async def _colour(ctx: Context) -> str:
    try:
        return (await ctx.elicit("colour", "Which colour?", Colour)).colour
    except AnswerFailedError as why:
        return f"failed: {why.message}"
    except AnswerTimedOutError:
        return "timed out"


@tool(annotations=READ_ONLY)
async def catches_all(ctx: Context) -> str:
    """Tells apart why there was no answer."""
    return await _colour(ctx)


@tool(annotations=READ_ONLY, answer_within=1)
async def impatient(ctx: Context) -> str:
    """Waits a second for its answer, and goes on without it."""
    return await _colour(ctx)


@tool(annotations=READ_ONLY)
async def both(ctx: Context) -> str:
    """Two questions side by side."""
    colour, size = await asyncio.gather(
        ctx.elicit("colour", "Which colour?", Colour), ctx.elicit("size", "How large?", Size)
    )
    return f"{colour.colour} {size.size}"


@tool(annotations=READ_ONLY)
async def in_turn(ctx: Context, count: int) -> str:
    """As many questions as wanted, one after the other."""
    sizes = [(await ctx.elicit(f"size{n}", f"Size {n}?", Size)).size for n in range(count)]
    return " ".join(map(str, sizes))


@tool(annotations=READ_ONLY)
async def consent(ctx: Context) -> str:
    """Asks to open a page."""
    answer = await ctx.ask_url("page", "Please sign in", "https://example.com/sign-in")
    return answer.action


@tool(annotations=READ_ONLY)
async def summarise(ctx: Context) -> str:
    """Asks a model."""
    result = await ctx.sample("summary", "Summarise this", max_tokens=50)
    block = result.content
    return getattr(block, "text", repr(block))


@tool(annotations=READ_ONLY)
async def folders(ctx: Context) -> str:
    """Asks for the client's roots."""
    return " ".join(str(root.uri) for root in await ctx.list_roots())


@tool(annotations=READ_ONLY, unasked=True)
async def takes_anything(ctx: Context) -> str:
    """Takes answers that nobody asked for."""
    return (await ctx.elicit("colour", "Which colour?", Colour)).colour


@tool(unasked=True)
async def paints_anything(ctx: Context) -> str:
    """Asks two questions one after the other, takes answers that nobody asked for, and acts."""
    colour = (await ctx.elicit("colour", "Which colour?", Colour)).colour
    size = (await ctx.elicit("size", "How large?", Size)).size
    did.append(f"{colour} {size}")
    return f"{colour} {size}"


@tool(annotations=READ_ONLY)
def blocking(ctx: SyncContext) -> str:
    """Asks without `await`."""
    colour = ctx.elicit("colour", "Which colour?", Colour).colour
    return f"{colour} in a thread"


@tool
async def says_and_hangs(ctx: Context) -> str:
    """Says something, and never ends."""
    ctx.progress(1, 2)
    await release.wait()
    return "never"


@tool
async def says_twice(ctx: Context) -> str:
    """Says something, and something more when the test lets it."""
    ctx.progress(1, 2)
    await release.wait()
    ctx.progress(2, 2)
    await running.wait()
    return "never"


@tool
async def steps_slowly(ctx: Context) -> str:
    """Does two things, with time between them."""
    await ctx.step("one", _does, "one")
    running.set()
    await release.wait()
    await ctx.step("two", _does, "two")
    return "done"


@tool(annotations=READ_ONLY)
async def closes_its_stream(ctx: Context) -> str:
    """Has its caller come back for its result, twice."""
    ctx.close_stream()
    await running.wait()
    ctx.close_stream()
    await release.wait()
    return "closed twice"


async def _does(what: str) -> None:
    did.append(what)


async def _asks(key: str) -> str:
    return (await current().elicit(key, "Which colour?", Colour)).colour


def _asks_in_thread(key: str) -> str:
    return current_sync().elicit(key, "Which colour?", Colour).colour


@tool(annotations=READ_ONLY)
async def asks_from(place: Literal["helper", "task", "group", "thread", "pool"]) -> str:
    """Asks where nobody has handed it a context."""
    if place == "helper":
        return await _asks(place)
    if place == "task":
        return await asyncio.create_task(_asks(place))
    if place == "group":
        async with asyncio.TaskGroup() as group:
            inner = group.create_task(_asks(place))
        return inner.result()
    if place == "thread":
        return await asyncio.to_thread(_asks_in_thread, place)
    return await current().in_thread(_asks_in_thread, place)


_SAYS: dict[str, Callable[[Any], Any]] = {
    "form": lambda ctx: ctx.elicit("form", "Which colour?", Colour),
    "page": lambda ctx: ctx.ask_url("page", "Please sign in", "https://example.com/sign-in"),
    "text": lambda ctx: ctx.sample("text", "Sum up", max_tokens=9),
    "folders": lambda ctx: ctx.list_roots("folders"),
    "log": lambda ctx: ctx.info("said"),
    "progress": lambda ctx: ctx.progress(1),
}


@tool(annotations=READ_ONLY)
async def pays(ctx: Context, page: Literal["inside", "elsewhere"] = "inside") -> str:
    """Sends the user to a page from which a machine calls back."""
    hook = ctx.callback("paid")
    query = f"?hook={quote(hook, safe='')}" if page == "inside" else ""
    key = "page" if page == "inside" else "paid"
    await ctx.ask_url(key, f"Pay, for {hook}", f"https://bank.example/pay{query}")
    return "paid" if await ctx.wait_for("paid", 20) else "not paid"


async def _says(what: str) -> None:
    said = _SAYS[what](current())
    if inspect.isawaitable(said):
        await said


def _says_in_thread(what: str) -> None:
    _SAYS[what](current_sync())


@tool(annotations=READ_ONLY)
async def says_from(place: str, what: str) -> str:
    """Asks or says something by each convenience, where nobody has handed it a context."""
    if place == "task":
        await asyncio.create_task(_says(what))
    elif place == "task of a task":
        await asyncio.create_task(_in_task(_says(what)))
    elif place == "thread":
        await asyncio.to_thread(_says_in_thread, what)
    elif place == "pool":
        await current().in_thread(_says_in_thread, what)
    elif place == "loop of a thread":
        await asyncio.to_thread(lambda: asyncio.run(_says(what)))
    else:
        await sync_to_async(_says_in_thread)(what)
    return f"{what} from {place}"


async def _in_task(work: Coroutine[Any, Any, None]) -> None:
    await asyncio.create_task(work)


@tool(annotations=READ_ONLY)
async def asks_from_a_strange_thread() -> str:
    """Asks in a thread that knows of no call."""
    raised: list[str] = []

    def asks() -> None:
        try:
            _asks_in_thread("strange")
        except RuntimeError as error:
            raised.append(str(error))

    thread = threading.Thread(target=asks)
    thread.start()
    await asyncio.to_thread(thread.join)
    return " ".join(raised)


@tool(annotations=READ_ONLY)
async def keeps_its_context(ctx: Context) -> str:
    """Leaves its context where somebody finds it after the call."""
    kept.append(ctx)
    return "kept"


@tool(annotations=READ_ONLY)
async def logs_and_asks(ctx: Context) -> str:
    """Says things before and after its question."""
    ctx.log("info", "before")
    ctx.progress(1, 3)
    await asyncio.to_thread(lambda: current().log("info", "in a thread"))
    await _asks("colour")
    ctx.progress(2, 3)
    ctx.log("info", "after")
    return "done"


@tool
async def stamps(ctx: Context) -> str:
    """Has a time, a name and a number of its own, and must not have others after the question."""
    made = [ctx.now().isoformat(), str(ctx.uuid()), ctx.random().random()]
    did.append(json.dumps(made))
    await ctx.elicit("size", "How large?", Size)
    return json.dumps(made)


@prompt
async def letter(ctx: Context, to: str) -> str:
    """A prompt that asks."""
    return f"Dear {to}, I like {(await ctx.elicit('colour', 'Which colour?', Colour)).colour}."


@resource("asking://page")
async def page(ctx: Context) -> str:
    """A resource that asks."""
    return f"The page is {(await ctx.elicit('colour', 'Which colour?', Colour)).colour}."


@resource("asking://days/{day}")
async def day(ctx: Context, day: str) -> str:
    """A template that asks."""
    return f"{day} is {(await ctx.elicit('colour', 'Which colour?', Colour)).colour}."
