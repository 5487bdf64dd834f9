"""The tool of the contract of all kinds (tests/serving/contracts), in Python."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel

from mcphost.sdk import Context, ToolError, tool

running = asyncio.Event()
abandoned = asyncio.Event()


def reset() -> None:
    """Forget what earlier tests did."""
    global running, abandoned
    running, abandoned = asyncio.Event(), asyncio.Event()


class Name(BaseModel):
    """The form."""

    name: str


async def _remembered(ctx: Context, ask: Callable[[str], Awaitable[str]]) -> list[str]:
    """Who calls, and the name in their store, which they are asked for once."""
    name, revision = await ctx.user_store.get("name")
    if name is None:
        name = await ask("a")
        await ctx.user_store.put("name", name, revision)
    return [*map(str, ctx.user or ()), name]


async def _does(ctx: Context, do: str) -> dict[str, Any]:
    async def ask(key: str) -> str:
        answer = await ctx.ask_form(key, f"{key}?", Name)
        return answer.content.name if answer.content else answer.action

    match do:
        case "once":
            return {"got": [await ask("a")]}
        case "twice":
            return {"got": [await ask("a"), await ask("b")]}
        case "beside":
            return {"got": list(await asyncio.gather(ask("a"), ask("b")))}
        case "page":
            answer = await ctx.ask_url("a", "a?", "https://pay.example.com/a")
            if not answer.accepted:
                raise ToolError(f"The user did not open the page: {answer.action}.")
            return {"got": ["agreed"]}
        case "user" | "remembered" | "nobody":
            return {"got": await _remembered(ctx, ask)}
        case "fail":
            raise ToolError("it went wrong")
        case "hang":
            running.set()
            try:
                await asyncio.Event().wait()
            finally:
                abandoned.set()
    return {"got": []}


@tool
async def plain(ctx: Context, do: str) -> dict[str, Any]:
    """Do what the test wants."""
    return await _does(ctx, do)


@tool(tasks="always")
async def task(ctx: Context, do: str) -> dict[str, Any]:
    """Do what the test wants, as a task."""
    return await _does(ctx, do)
