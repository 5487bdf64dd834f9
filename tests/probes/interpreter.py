"""A tool that does what a program says which it gets as its argument: tests make those at random.

A program is a list of instructions, each a list:

- `["step", name, argument]`: a recorded step, which leaves an effect that tests can count;
- `["loose", name, argument]`: the same, of which nobody can tell on which way it is;
- `["ask", key]`: a form that wants a number;
- `["pause"]`: waits for as long as there is `<file>.pause`, and says so by `<file>.paused`;
- `["gather", [program, …]]`, `["group", [program, …]]`: programs side by side.

An instruction's value is its step's result, its answer, or the values of its programs; the argument
of a step also holds what was learned before it on its way, so that a wrong replay shows.

An effect is a line in the file of EFFECTS, shared by all processes, if that is set; else it is kept
in `effects`. A process that finds `<file>.kill` beside it takes it away and kills itself, between
the effect and its record.
"""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from mcphost.sdk import Context, ToolAnnotations, tool

effects: list[list[Any]] = []


async def _nothing() -> None:
    return None


after_effect: Callable[[], Awaitable[None]] = _nothing


def reset() -> None:
    """Forget earlier tests."""
    global after_effect
    after_effect = _nothing
    effects.clear()


class Number(BaseModel):
    """What every question wants."""

    number: int


async def _perform(name: str, argument: Any, before: str, idempotency_key: str = "") -> list[Any]:
    line = [name, argument, before, idempotency_key]
    if "EFFECTS" in os.environ:
        _write(Path(os.environ["EFFECTS"]), line)
    else:
        effects.append(line)
        await after_effect()
    return [name, argument, before]


def _write(path: Path, line: list[Any]) -> None:
    with path.open("a") as file:
        file.write(f"{json.dumps(line)}\n")
    with suppress(FileNotFoundError):
        path.with_suffix(".kill").unlink()
        os.kill(os.getpid(), signal.SIGKILL)


async def _pause(path: Path) -> None:
    while path.with_suffix(".pause").exists():
        path.with_suffix(".paused").touch()
        await asyncio.sleep(0.05)  # between looks at a file; nothing would wake us


def _digest(values: list[Any]) -> str:
    return sha256(json.dumps(values).encode()).hexdigest()[:8]


async def _run(ctx: Context, program: list[Any], before: str) -> list[Any]:
    values: list[Any] = []
    for instruction in program:
        values.append(await _do(ctx, instruction, _digest([before, *values])))
    return values


async def _do(ctx: Context, instruction: list[Any], before: str) -> Any:
    match instruction:
        case ["step", name, argument]:
            return await ctx.step(name, _perform, name, argument, before)
        case ["loose", name, argument]:
            return await ctx.step(name, _perform, name, argument, "")
        case ["ask", key]:
            answer = await ctx.ask_form(key, f"A number for {key}?", Number)
            return [answer.action, answer.content and answer.content.number]
        case ["pause"]:
            await _pause(Path(os.environ.get("EFFECTS", "effects")))
            return None
        case ["gather", parts]:
            return list(await asyncio.gather(*(_run(ctx, part, before) for part in parts)))
        case ["group", parts]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_run(ctx, part, before)) for part in parts]
            return [task.result() for task in tasks]
        case _:
            raise ValueError(f"no instruction: {instruction}")


@tool
async def interpret(ctx: Context, program: list[Any]) -> str:
    """Runs a program; each round that takes in an answer is claimed."""
    return json.dumps(await _run(ctx, program, ""))


@tool(annotations=ToolAnnotations(idempotent_hint=True))
async def interpret_freely(ctx: Context, program: list[Any]) -> str:
    """Runs a program without claims."""
    return json.dumps(await _run(ctx, program, ""))
