"""Somebody at a client: what the client shows is a line of JSON on its output, what is said to it is
a line of JSON on its input."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Call = Callable[[str, dict[str, Any]], Awaitable[Any]]
Read = Callable[[str], Awaitable[Any]]
Get = Callable[[str, dict[str, str]], Awaitable[Any]]


_progress: list[float] = []
_logs: list[Any] = []
_watching = False
_looking = asyncio.Lock()


def note(progress: float) -> None:
    """Keep what was told of the progress of the call under way; tell of it, if somebody watches."""
    _progress.append(progress)
    if _watching:
        tell(progress=progress)


async def note_log(params: Any, *_: Any) -> None:
    """Keep the data of a log message of the call under way."""
    _logs.append(params.data)


async def overhear(message: Any) -> None:
    """Tell of a change of a list that nobody was asked about."""
    method = getattr(getattr(message, "root", message), "method", "")
    if method.endswith("list_changed"):
        tell(heard=method)


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def hear() -> Any:
    """The next line; None at the end."""
    line = await asyncio.to_thread(sys.stdin.readline)
    return json.loads(line) if line else None


async def answer(question: Mapping[str, Any]) -> Any:
    """What the person answers when shown a question. They are shown one at a time."""
    async with _looking:
        tell(asked=question)
        return await hear()


async def call_what_is_wanted(call: Call, read: Read | None = None, get: Get | None = None) -> None:
    """Call one tool after the other, or read a resource or get a prompt, until nothing more is wanted, and
    tell what came of each."""
    global _watching
    while (wanted := await hear()) is not None:
        _watching = wanted.get("watch", False)
        _progress.clear()
        _logs.clear()
        try:
            match wanted:
                case {"read": uri}:
                    result = await read(uri)
                case {"get": prompt, "arguments": arguments}:
                    result = await get(prompt, arguments)
                case {"call": tool, "arguments": arguments}:
                    result = await call(tool, arguments)
                case _:
                    raise ValueError(f"unknown: {wanted}")
        except Exception as error:  # noqa: BLE001 - whatever a client raises is to be seen
            tell(raised=f"{type(error).__name__}: {error}")
        else:
            tell(done={"progress": list(_progress), "logs": list(_logs), **result})
