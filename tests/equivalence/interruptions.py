"""What happens beside a call: to a plain tool between two calls, to a waiting tool during one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from django.db import IntegrityError

from mcphost.audit.writer.sinks import PostgresSink, SqliteSink
from mcphost.audit.writer.writer import WriterLimits, writer
from mcphost.identity.services import revoke
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import close_tenant, update_tenant
from tests.cast import ACTOR
from tests.equivalence.run import EVERYTHING, LEGACY, MODERN, Run, Scenario, called
from tests.equivalence.sessions import RED, first
from tests.legacy import calling
from tests.mcp import Exchange

PAGE = "https://app.example.com"
Interrupt = Callable[[Run], Awaitable[None]]


# What changes


async def _revoked(run: Run) -> None:
    token = run.cast.owner.mcp_token.split("_")[1]
    await in_database(revoke, run.cast.acme.id, token, actor=ACTOR)


async def _closed(run: Run) -> None:
    await in_database(close_tenant, run.cast.acme.id, actor=ACTOR)


async def _disabled(run: Run) -> None:
    for name in ("text", "acts", "waits", "acts_slowly"):
        await run.disable(name)


async def _retitled(run: Run) -> None:
    fields = TenantFields(title="Other", allowed_origins=(PAGE,))
    await in_database(update_tenant, run.cast.acme.id, fields, actor=ACTOR)


async def _draining(run: Run) -> None:
    shutdown.begin()


async def _stopped_writer(run: Run) -> None:
    await asyncio.to_thread(writer.stop, 20)


async def _full_queue(run: Run) -> None:
    run.patch.setattr(writer, "_limits", WriterLimits(waiting=0))


def _failing(error: type[Exception]) -> Interrupt:
    async def fail(run: Run) -> None:
        def refuse(*_: Any) -> None:
            raise error("canary of the database")

        for sink in (SqliteSink, PostgresSink):
            for name in ("write", "write_if"):
                run.patch.setattr(sink, name, refuse)
        run.patch.setattr(writer, "_limits", WriterLimits(give_up=0))

    return fail


CHANGES: dict[str, Interrupt] = {
    "token revoked": _revoked,
    "tenant closed": _closed,
    "tool disabled": _disabled,
    "tenant changed": _retitled,
    "process draining": _draining,
    "writer stopped": _stopped_writer,
    "queue full": _full_queue,
    "record refused": _failing(IntegrityError),
}


# When it changes


def _between(tool: str, arguments: Any, change: Interrupt) -> Interrupt:
    async def act(run: Run) -> None:
        await run.call(tool, arguments)
        await change(run)
        for _ in range(2):
            await run.call(tool, arguments)
        await run.note_effects()

    return act


def _during(tool: str, change: Interrupt, revision: str) -> Interrupt:
    async def act(run: Run) -> None:
        client = run.client(revision)
        await client.ready()
        async with client.begun(tool):
            await (run.until_watched() if revision == MODERN else run.until_running())
            await change(run)
            if change not in _ENDING:
                run.release()
        await run.note_effects()

    return act


_ENDING = (_revoked, _closed)
"""Changes after which the process itself ends the call."""


# The client, and the process


def _disconnecting(tool: str, revision: str) -> Interrupt:
    async def act(run: Run) -> None:
        client = run.client(revision)
        await client.ready()
        async with client.begun(tool, progressToken="p") as exchange:
            await run.until_running()
            exchange.hang_up()
            await exchange.done()
        run.release()
        await run.note_effects()

    return act


async def _disconnected_at_once(run: Run) -> None:
    for tool in ("text", "acts", "suspends"):
        arguments = {} if tool == "suspends" else {"text": "a"}
        async with run.posted(called(tool, arguments), run.cast.owner.mcp_token) as exchange:
            exchange.hang_up()
    await run.note_effects()


def _cancelled_by_server(tool: str, revision: str) -> Interrupt:
    async def act(run: Run) -> None:
        exchange = await _begun(run, tool, revision)
        exchange.task.cancel()
        with suppress(asyncio.CancelledError):
            await exchange.done()
        run.release()
        await run.note_effects()

    return act


async def _begun(run: Run, tool: str, revision: str) -> Exchange:
    client = run.client(revision)
    await client.ready()
    if revision == LEGACY:
        exchange: Exchange = client.session.exchange(calling(tool))
        await run.until_running()
        return exchange
    exchange = run.begin_call(tool)
    await run.until_watched()
    return exchange


def _cut(tool: str) -> Interrupt:
    async def act(run: Run) -> None:
        exchange = await _begun(run, tool, MODERN)
        shutdown.cut()
        await exchange.done()
        await run.note_effects()

    return act


async def _asks_while_draining(run: Run) -> None:
    state = await first(run, "asks_and_acts", {"what": "a wall"})
    shutdown.begin()
    fields = {"requestState": state, "inputResponses": RED}
    for _ in range(2):
        arguments = {"what": "a wall"}
        await run.call("asks_and_acts", arguments, fields=fields, capabilities=EVERYTHING)
    await run.call("asks", capabilities=EVERYTHING)
    await run.note_effects()


PLAIN = {"plain tool": "text", "acting tool": "acts"}
SLOW = {"waiting tool": "waits", "acting tool that waits": "acts_slowly"}
TEXT = {"text": "a"}

SCENARIOS = [
    *(
        Scenario(f"{change} between calls, {name}", _between(tool, TEXT, act))
        for change, act in CHANGES.items()
        for name, tool in PLAIN.items()
    ),
    *(
        Scenario(f"{change} during a call, {name}", _during(tool, act, MODERN))
        for change, act in CHANGES.items()
        for name, tool in SLOW.items()
    ),
    *(
        Scenario(f"{change} during a call in a session", _during("acts_slowly", act, LEGACY))
        for change, act in CHANGES.items()
        if act not in _ENDING
    ),
    *(
        Scenario(f"client disconnects, {name}", _disconnecting(tool, MODERN))
        for name, tool in {**SLOW, "tool that reports": "reports_and_waits"}.items()
    ),
    Scenario("client disconnects at once", _disconnected_at_once),
    *(
        Scenario(f"server cancels, {name}", _cancelled_by_server(tool, MODERN))
        for name, tool in SLOW.items()
    ),
    *(Scenario(f"server cuts, {name}", _cut(tool)) for name, tool in SLOW.items()),
    Scenario("answered while the process drains", _asks_while_draining),
]
