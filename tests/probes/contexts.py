"""Tools of an author who shares contexts between calls: some give theirs away, others use what they find.

Each lender goes on until it is told to end, each borrower tells what became of every member that it used.
"""

import asyncio
import inspect
import json
import threading
from collections import defaultdict
from typing import Any

from pydantic import BaseModel

from mcphost.sdk import Context, SyncContext, ToolAnnotations, prompt, resource, tool

READ_ONLY = ToolAnnotations(read_only_hint=True)
PATIENCE = 30

kept: dict[str, Any] = {}
lent: defaultdict[str, threading.Event] = defaultdict(threading.Event)
wanted_back: defaultdict[str, threading.Event] = defaultdict(threading.Event)


def reset() -> None:
    """Forget earlier tests."""
    kept.clear()
    lent.clear()
    wanted_back.clear()


class Name(BaseModel):
    """A form with one text."""

    name: str


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "announce": ("lent://today",),
    "announce_list": ("tools",),
    "ask_form": ("name", "Who are you?", Name),
    "ask_url": ("page", "Please sign in", "https://example.com/"),
    "debug": ("heard",),
    "done_url": ("paid",),
    "callback": ("shipped",),
    "elicit": ("name", "Who are you?", Name),
    "error": ("heard",),
    "in_thread": (threading.get_ident,),
    "info": ("heard",),
    "log": ("info", "heard"),
    "progress": (1,),
    "report_progress": (1,),
    "require": ("elicitation",),
    "sample": ("text", "Sum up"),
    "step": ("s", threading.get_ident),
    "wait_for": ("paid", 1),
    "warning": ("heard",),
}
"""What members of a context are called with, if with anything."""


def _lend(name: str, ctx: Any) -> str:
    kept[name] = ctx
    lent[name].set()
    wanted_back[name].wait(PATIENCE)
    return "done"


@tool(annotations=READ_ONLY)
async def lends(ctx: Context, name: str) -> str:
    """Give the context away, and wait."""
    return await asyncio.to_thread(_lend, name, ctx)


@tool
def lends_in_thread(ctx: SyncContext, name: str) -> str:
    """The same in a thread."""
    return _lend(name, ctx)


@prompt
async def lends_as_prompt(ctx: Context, name: str) -> str:
    """The same as a prompt."""
    return await asyncio.to_thread(_lend, name, ctx)


@resource("lent://{name}")
async def lends_as_resource(ctx: Context, name: str) -> str:
    """The same as a resource."""
    return await asyncio.to_thread(_lend, name, ctx)


@tool(annotations=READ_ONLY)
async def wants_back(name: str) -> str:
    """Let a lender end."""
    wanted_back[name].set()
    return "told"


async def _use(ctx: Any, member: str) -> None:
    used = getattr(ctx, member)
    if callable(used):
        more = {"max_tokens": 9} if member == "sample" else {}
        used = used(*ARGUMENTS.get(member, ()), **more)
    if inspect.isawaitable(used):
        await used


async def _borrow(name: str) -> dict[str, str]:
    """What became of each member of the context: the error that it raised."""
    if not await asyncio.to_thread(lent[name].wait, PATIENCE):
        raise TimeoutError(f"{name} was not lent")
    ctx = kept[name]
    tried: dict[str, str] = {}
    for member in dir(ctx):
        if not member.startswith("_"):
            try:
                await _use(ctx, member)
                tried[member] = "used"
            except BaseException as error:  # noqa: BLE001 - that is what is told
                tried[member] = f"{type(error).__name__}: {error}"
    return tried


@tool(annotations=READ_ONLY)
async def borrows(name: str) -> str:
    """Use every member of a context that was given away."""
    return json.dumps(await _borrow(name))


@tool
def borrows_in_thread(name: str) -> str:
    """The same in a thread."""
    return json.dumps(asyncio.run(_borrow(name)))


@prompt
async def borrows_as_prompt(name: str) -> str:
    """The same as a prompt."""
    return json.dumps(await _borrow(name))


@resource("borrowed://{name}")
async def borrows_as_resource(name: str) -> str:
    """The same as a resource."""
    return json.dumps(await _borrow(name))


@tool(annotations=READ_ONLY)
async def borrows_in_no_call(name: str) -> str:
    """Use them in a thread that knows of no call."""
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(json.dumps(asyncio.run(_borrow(name)))))
    thread.start()
    await asyncio.to_thread(thread.join, PATIENCE)
    return told[0]
