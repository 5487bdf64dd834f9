"""A tool leaks the context objects of its calls: code of other calls cannot use them, in any era and tenant.

What is recorded of it is in `tests/rounds/test_contexts_across_tenants.py`. The hostile tools are `tests/probes/contexts.py`, offered
by a tenant whose callers have tokens and by a public one, on one server.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from threading import Thread
from typing import Any

import pytest
from mcp import Client

from mcphost.sdk import Context
from tests.e2e import raw, raw_sessions
from tests.e2e.processes import Server
from tests.e2e.test_python_client import connected, text_of

MEMBERS = {name for name in dir(Context) if not name.startswith("_")}
ANOTHER_CALL = "ForeignContextError: this context belongs to another call"
MODERN, LEGACY = "auto", "legacy"
CAPABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}

_numbers = count(1)


@dataclass(frozen=True)
class Hostile:
    """A server with hostile tools at two tenants."""

    server: Server

    def url(self, tenant: str) -> str:
        return f"{self.server.base}/t/{tenant}/mcp"

    def token(self, tenant: str) -> str | None:
        return self.server.token if tenant == "demo" else None


@pytest.fixture
def hostile(sqlite_server: Server) -> Hostile:
    return Hostile(sqlite_server)


Use = Callable[[Client, str], Awaitable[str]]


def _tool(tool: str) -> Use:
    async def use(client: Client, name: str) -> str:
        return text_of(await client.call_tool(tool, {"name": name}))

    return use


def _prompt(prompt: str) -> Use:
    async def use(client: Client, name: str) -> str:
        message = (await client.get_prompt(prompt, {"name": name})).messages[0]
        return str(getattr(message.content, "text", ""))

    return use


def _resource(scheme: str) -> Use:
    async def use(client: Client, name: str) -> str:
        read = await client.read_resource(f"{scheme}://{name}")
        return str(getattr(read.contents[0], "text", ""))

    return use


LENDERS: dict[str, Use] = {
    "tool": _tool("lends"),
    "plain tool": _tool("lends_in_thread"),
    "prompt": _prompt("lends_as_prompt"),
    "resource": _resource("lent"),
}
BORROWERS: dict[str, Use] = {
    "tool": _tool("borrows"),
    "plain tool": _tool("borrows_in_thread"),
    "prompt": _prompt("borrows_as_prompt"),
    "resource": _resource("borrowed"),
}


class Heard:
    """All that a client was asked or told, beside its answers."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def __call__(self, *said: Any) -> Any:
        self.asked.append(said)
        raise AssertionError("this client was to be left alone")

    @property
    def options(self) -> dict[str, Any]:
        return {
            "elicitation_callback": self,
            "sampling_callback": self,
            "list_roots_callback": self,
            "logging_callback": self,
        }


@pytest.mark.parametrize(
    ("victim", "victims_era", "attackers_era"),
    [
        ("demo", MODERN, LEGACY),
        ("demo", LEGACY, MODERN),
        ("commons", MODERN, MODERN),
        ("commons", LEGACY, LEGACY),
    ],
)
async def test_a_call_cannot_send_requests_or_notifications_to_a_client_of_another_tenant(
    hostile: Hostile, victims_era: str, attackers_era: str, victim: str
) -> None:
    attacker = "commons" if victim == "demo" else "demo"
    heard = Heard()
    async with (
        connected(
            hostile.url(victim), hostile.token(victim), mode=victims_era, **heard.options
        ) as lender,
        connected(hostile.url(attacker), hostile.token(attacker), mode=attackers_era) as borrower,
    ):
        for lend in LENDERS.values():
            name = f"n{next(_numbers)}"
            lending = asyncio.ensure_future(lend(lender, name))
            for way, borrow in BORROWERS.items():
                tried = json.loads(await borrow(borrower, name))
                assert set(tried) == MEMBERS, way
                assert all(error.startswith(ANOTHER_CALL) for error in tried.values()), tried
            await borrower.call_tool("wants_back", {"name": name})
            assert await lending == "done"
    assert heard.asked == []


def _borrow_and_return(hostile: Hostile, name: str) -> dict[str, str]:
    """What becomes of each member in a call of the anonymous caller, after which the lender ends."""
    answers = [
        raw.post(hostile.server, raw.call(tool, {"name": name}), None, "commons")
        for tool in ("borrows", "wants_back")
    ]
    assert [one.status for one in answers] == [200, 200], answers
    tried: dict[str, str] = json.loads(answers[0].message["result"]["content"][0]["text"])
    return tried


def test_the_stream_of_the_victim_has_its_own_response_and_no_other_message(
    hostile: Hostile,
) -> None:
    session = raw_sessions.begin(hostile.server, "2025-11-25", **CAPABLE)
    name = f"n{next(_numbers)}"
    replies: list[raw.Reply] = []
    message = raw_sessions.calling("lends", 7, token="p1", name=name)
    lending = Thread(target=lambda: replies.append(session.send(message)))
    lending.start()
    tried = _borrow_and_return(hostile, name)
    lending.join(raw.PATIENCE)
    assert all(error.startswith(ANOTHER_CALL) for error in tried.values()), tried
    [reply] = replies
    assert (reply.status, reply.message["id"]) == (200, 7)
    assert b'"method"' not in reply.body
