"""Tools that become tasks, in each of the ways there are; what they did is in `did`."""

import asyncio
import os
import threading
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcphost.sdk import Context, SyncContext, ToolAnnotations, ToolError, tool

READ_ONLY = ToolAnnotations(read_only_hint=True)

did: list[str] = []
running = asyncio.Event()
cancelled = asyncio.Event()
release = asyncio.Event()
thread_release = threading.Event()


def reset() -> None:
    """Forget earlier tests. An event belongs to the loop that first waits for it."""
    global running, cancelled, release, thread_release
    running, cancelled, release = asyncio.Event(), asyncio.Event(), asyncio.Event()
    thread_release = threading.Event()
    did.clear()


class Colour(BaseModel):
    """A form with a choice."""

    colour: Literal["red", "green", "blue"]


class Size(BaseModel):
    """A form with a number."""

    size: Annotated[int, Field(ge=1, le=9)]


class Name(BaseModel):
    """A form with a text."""

    name: str


async def _held(word: str) -> str:
    """Wait until the test lets it go; note a cancellation."""
    did.append(f"{word} began")
    running.set()
    try:
        await release.wait()
    finally:
        if not release.is_set():
            cancelled.set()
    did.append(f"{word} ended")
    return word


@tool
async def never(text: str) -> str:
    """Is no task for any client."""
    did.append(text)
    return text


@tool(tasks="slow")
async def quick(text: str) -> str:
    """May become a task, but is not slow."""
    did.append(text)
    return text


@tool(tasks="slow")
async def slow() -> str:
    """Becomes a task while it runs."""
    return await _held("slow")


@tool(tasks="slow")
async def slow_and_loud(ctx: Context) -> str:
    """Reports progress before and after it becomes a task."""
    ctx.progress(1, 2)
    await _held("slow")
    ctx.progress(2, 2)
    return "slow"


@tool(tasks="always")
async def always(text: str) -> str:
    """Is a task for each client that can follow one."""
    did.append(text)
    return text


@tool(tasks="always", annotations=READ_ONLY)
async def reads(text: str) -> str:
    """Is read-only."""
    did.append(text)
    return text


@tool(tasks="always")
async def counts(text: str) -> dict[str, int]:
    """Returns structured content."""
    return {"length": len(text)}


@tool(tasks="required")
async def required(text: str) -> str:
    """Can be nothing but a task."""
    did.append(text)
    return text


@tool(tasks="always")
async def refuses() -> str:
    """Fails on purpose, with words for the model."""
    raise ToolError("the printer is out of paper")


@tool(tasks="always")
async def crashes() -> str:
    """Raises."""
    raise RuntimeError("canary-of-the-traceback")


@tool(tasks="always", retries=2)
async def fails(ctx: Context, times: int) -> str:
    """Records a step, and fails in the next one so often: its author says that it may run again."""
    await ctx.step("first", _says, "first")
    await ctx.step("second", _fails, times)
    return "done"


async def _fails(times: int, idempotency_key: str = "") -> None:
    did.append(f"second {idempotency_key}")
    if len(did) <= 1 + times:
        raise RuntimeError("canary-of-the-traceback")


@tool(tasks="slow", retries=2)
async def fails_for_all() -> str:
    """Raises, also for clients that cannot follow tasks."""
    did.append("failed")
    raise RuntimeError("canary-of-the-traceback")


@tool(tasks="always", retries=2)
async def refuses_for_good() -> str:
    """Fails on purpose: its author lets it run again after other failures only."""
    did.append("refused")
    raise ToolError("the printer is out of paper")


@tool(tasks="always", retries=2)
async def asks_and_fails(ctx: Context, times: int) -> str:
    """Fails so often after each of its questions."""
    for number in (1, 2):
        chosen = (await ctx.elicit(f"colour{number}", "Which colour?", Colour)).colour
        did.append(chosen)
        if did.count(chosen) <= times:
            raise RuntimeError("canary-of-the-traceback")
    return " ".join(did)


@tool(tasks="always")
async def needs_sampling(ctx: Context) -> str:
    """Ends with an error of the protocol for a client that cannot sample."""
    ctx.require("sampling")
    return "sampled"


@tool(tasks="always")
async def hangs() -> str:
    """Works until the test lets it go."""
    return await _held("hangs")


@tool(tasks="always")
async def progresses(ctx: Context) -> str:
    """Reports progress, logs, and works on until the test lets it go."""
    ctx.progress(0.5, message="half")
    ctx.info("half done")
    return await _held("progresses")


@tool(tasks="always")
async def paint(ctx: Context, what: str = "it") -> str:
    """Asks one question and then does something, once."""
    chosen = await ctx.elicit("colour", f"Which colour for {what}?", Colour)
    did.append(f"{what} {chosen.colour}")
    return f"{what} is {chosen.colour}"


@tool(tasks="always")
async def paint_later(ctx: Context, what: str = "it") -> str:
    """Asks only when the test lets it."""
    ctx.progress(1, message="getting ready")
    ctx.info("getting ready")
    running.set()
    await release.wait()
    chosen = await ctx.elicit("colour", f"Which colour for {what}?", Colour)
    did.append(f"{what} {chosen.colour}")
    return f"{what} is {chosen.colour}"


@tool(tasks="always")
async def paint_slowly(ctx: Context) -> str:
    """Works on after the answer until the test lets it go."""
    chosen = await ctx.elicit("colour", "Which colour?", Colour)
    await _held(chosen.colour)
    return f"it is {chosen.colour}"


@tool(tasks="always")
async def paint_sized(ctx: Context, what: str = "it") -> str:
    """Asks two questions, one after the other, and then does something, once."""
    colour = (await ctx.elicit("colour", f"Which colour for {what}?", Colour)).colour
    size = (await ctx.elicit("size", "How large?", Size)).size
    did.append(f"{what} {colour} {size}")
    return f"{what} is {colour}, size {size}"


@tool(tasks="always")
async def both(ctx: Context) -> str:
    """Two questions side by side."""
    colour, size = await asyncio.gather(
        ctx.elicit("colour", "Which colour?", Colour), ctx.elicit("size", "How large?", Size)
    )
    return f"{colour.colour} {size.size}"


@tool(tasks="always", annotations=READ_ONLY)
async def survey(ctx: Context) -> str:
    """Says how it was answered."""
    return (await ctx.ask_form("colour", "Which colour?", Colour)).action


@tool(tasks="always")
async def signs_in(ctx: Context) -> str:
    """Asks to open a page."""
    return (await ctx.ask_url("page", "Please sign in", "https://example.com/sign-in")).action


@tool(tasks="always")
async def signs_in_while_it_works(ctx: Context) -> str:
    """Asks to open a page, and beside it does a step that ends when the test lets it."""
    answer, _ = await asyncio.gather(
        ctx.ask_url("page", "Please sign in", "https://example.com/sign-in"),
        ctx.step("work", _held, "work"),
    )
    return answer.action


@tool(tasks="always")
async def asks_while_it_works(ctx: Context) -> str:
    """A question, and beside it a step that ends when the test lets it."""
    chosen, word = await asyncio.gather(
        ctx.elicit("colour", "Which colour?", Colour), ctx.step("work", _held, "work")
    )
    return f"{word} {chosen.colour}"


@tool(tasks="always")
async def changes_its_mind(ctx: Context) -> str:
    """Takes a question back once a step beside it has ended, and asks another."""
    first = asyncio.create_task(ctx.elicit("colour", "Which colour?", Colour))
    await ctx.step("work", _held, "work")
    first.cancel()
    await asyncio.wait({first})
    return f"size {(await ctx.elicit('size', 'How large?', Size)).size}"


@tool(tasks="slow")
async def registers(ctx: Context) -> str:
    """Asks in its request, and becomes a task once it has the answer."""
    return await _registered(ctx)


@tool(tasks="slow", annotations=ToolAnnotations(read_only_hint=True))
async def looks_up(ctx: Context) -> str:
    """As `registers`, but changes nothing, so that its rounds are not claimed."""
    return await _registered(ctx)


async def _registered(ctx: Context) -> str:
    name = (await ctx.elicit("name", "What is your name?", Name)).name
    await ctx.become_task()
    return f"{name} {await _held('registers')}"


@tool(tasks="slow")
async def defers(ctx: Context) -> str:
    """Becomes a task at once, and asks there."""
    await ctx.become_task()
    did.append("deferred")
    return (await ctx.elicit("colour", "Which colour?", Colour)).colour


@tool(tasks="slow")
def defers_in_a_thread(ctx: SyncContext) -> str:
    """The same without `await`."""
    ctx.become_task()
    return ctx.elicit("colour", "Which colour?", Colour).colour


@tool(tasks="slow")
def slow_in_a_thread() -> str:
    """Becomes a task while it blocks its thread."""
    did.append("began")
    thread_release.wait(10)
    did.append("ended")
    return "slow"


@tool(tasks="slow")
async def slow_after_a_step(ctx: Context) -> str:
    """Records a step in its request, and becomes a task because the next one is slow."""
    await ctx.step("first", _does, "first")
    return await ctx.step("second", _held, "second")


@tool(tasks="slow")
async def slow_after_its_answer(ctx: Context) -> str:
    """Asks in its request, and becomes a task because it is slow then."""
    name = (await ctx.elicit("name", "What is your name?", Name)).name
    return f"{name} {await ctx.step('work', _held, 'slow')}"


@tool(tasks="slow", annotations=ToolAnnotations(idempotent_hint=True))
async def slow_after_its_answer_without_claims(ctx: Context) -> str:
    """The same, of rounds that are not claimed."""
    name = (await ctx.elicit("name", "What is your name?", Name)).name
    return f"{name} {await ctx.step('work', _held, 'slow')}"


@tool(tasks="slow")
async def slow_before_its_question(ctx: Context) -> str:
    """Becomes a task while it runs, and asks there; then it would become one again."""
    word = await ctx.step("work", _held, "slow")
    await ctx.become_task()
    chosen = await ctx.elicit("colour", "Which colour?", Colour)
    return f"{word} {chosen.colour}"


@tool(tasks="slow")
async def steps_and_defers(ctx: Context) -> str:
    """Does something in its request, and something in the task."""
    await ctx.step("one", _does, "one")
    await ctx.become_task()
    await ctx.become_task()
    await ctx.step("two", _does, "two")
    await ctx.elicit("colour", "Which colour?", Colour)
    await ctx.step("three", _does, "three")
    return "done"


async def _does(what: str) -> None:
    did.append(what)


@tool(tasks="slow")
async def asks_often(ctx: Context, count: int) -> str:
    """As many questions as wanted, one after the other."""
    sizes = [(await ctx.elicit(f"size{n}", f"Size {n}?", Size)).size for n in range(count)]
    return " ".join(map(str, sizes))


@tool(tasks="always")
async def large(size: int) -> str:
    """Returns a long text."""
    return "x" * size


@tool(tasks="always")
async def hangs_in_a_process() -> str:
    """Writes down in the file of EFFECTS that it has begun, and that it was cancelled."""
    file = Path(os.environ["EFFECTS"])
    _write_down(file, "began")
    try:
        await asyncio.Event().wait()
    finally:
        _write_down(file, "cancelled")
    return "never"


@tool(tasks="always")
async def works_and_asks(ctx: Context, number: int) -> str:
    """Two steps around a question, each with a value that no other run of it has: the question and
    the result tell which were recorded. The file of EFFECTS has a line when a step begins, with its
    idempotency key, and one when the code after it goes on."""
    first = await ctx.step("first", _worked, number, "first")
    _write_down(Path(os.environ["EFFECTS"]), f"{number} first recorded {first}")
    asked = f"Which colour for {number} after {first}?"
    chosen = await ctx.elicit("colour", asked, Colour)
    second = await ctx.step("second", _worked, number, "second")
    _write_down(Path(os.environ["EFFECTS"]), f"{number} second recorded {second}")
    return f"{number} {first} {chosen.colour} {second}"


async def _worked(number: int, name: str, idempotency_key: str = "") -> str:
    value = token_hex(4)
    _write_down(Path(os.environ["EFFECTS"]), f"{number} {name} began {value} {idempotency_key}")
    await asyncio.sleep(0.3)  # so that a process may be killed meanwhile
    return value


@tool(tasks="always")
async def works_in_a_process(ctx: Context) -> str:
    """Writes down two steps; between them it waits as long as there is `<file>.pause`."""
    file = Path(os.environ["EFFECTS"])
    await ctx.step("one", _write_down, file, "one")
    while file.with_suffix(".pause").exists():  # noqa: ASYNC110 - nothing would wake us
        await asyncio.sleep(0.05)
    await ctx.step("two", _write_down, file, "two")
    return "worked"


@tool(tasks="always")
async def steps_in_a_process(ctx: Context) -> str:
    """Two steps, each written down with the port of its process when it begins. The first lasts as
    long as there is `<file>.pause`."""
    first = await ctx.step("first", _paused, "first")
    second = await ctx.step("second", _paused, "second")
    return f"{first} {second}"


async def _paused(name: str) -> str:
    file = Path(os.environ["EFFECTS"])
    _write_down(file, f"{name} {os.environ.get('PORT')}")
    while file.with_suffix(".pause").exists():  # noqa: ASYNC110 - nothing would wake us
        await asyncio.sleep(0.05)
    return name


def _write_down(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(f"{line}\n")


async def _says(text: str) -> str:
    did.append(text)
    return text


@tool(tasks="always")
async def two_steps(ctx: Context) -> str:
    """Records a step, and waits in the next one."""
    first = await ctx.step("first", _says, "first")
    second = await ctx.step("second", _held, "second")
    return f"{first} {second}"


@tool(tasks="always")
async def progresses_and_asks(ctx: Context) -> str:
    """Reports progress before and after a question; the next round repeats the first report."""
    ctx.progress(1, 4)
    chosen = await ctx.elicit("colour", "Which colour?", Colour)
    ctx.progress(3, 4)
    return chosen.colour


@tool(tasks="always")
async def two_held_steps(ctx: Context) -> str:
    """Waits in a step, and has another after it."""
    await ctx.step("first", _held, "first")
    return await ctx.step("second", _says, "second")
