"""A tool shares the contexts of its calls: no code but a call's own can use them, in whichever era and tenant.

The hostile tools are `tests/probes/contexts.py`, offered by a tenant whose callers have tokens and by a
public one, on one server.
"""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from mcp import Client

from mcphost.sdk import Context
from tests.e2e import backing, raw, raw_sessions
from tests.e2e.processes import ROOT, Server, manage, serving
from tests.e2e.test_python_client import connected, text_of

PROBE = ROOT / "tests" / "probes" / "contexts.py"
MEMBERS = {name for name in dir(Context) if not name.startswith("_")}
ANOTHER_CALL = "ForeignContext: this context belongs to another call"
NO_CALL = "ctx.in_thread"
LOGGED = "a tool context was misused"
MODERN, LEGACY = "auto", "legacy"
CAPABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}

PUBLISH = """
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.services import create_tenant
actor = Actor.system("a test")
kinds.discover()
hostile = [name for name, _ in kinds.functions() if name.startswith("contexts.")]
create_tenant("commons", TenantFields(title="Commons", public=True), actor=actor)
for tenant in Tenant.objects.filter(slug__in=["demo", "commons"]):
    publish_functions(tenant.id, hostile, actor)
"""
READ = """
import json
from mcphost.audit.models import Entry
from mcphost.tenants.models import Tenant
names = dict(Tenant.objects.values_list("id", "slug"))
found = Entry.objects.filter(action__in=["message.refused", "question.asked"]).order_by("id")
print("entries", json.dumps([
    [names[one.tenant], one.action, str(one.call), one.reason, json.dumps(one.facts)] for one in found
]))
"""

_numbers = count(1)


@dataclass(frozen=True)
class Hostile:
    """A server with hostile tools at two tenants."""

    server: Server
    settings: dict[str, str]

    def url(self, tenant: str) -> str:
        return f"{self.server.base}/t/{tenant}/mcp"

    def token(self, tenant: str) -> str | None:
        """What its callers have: those of `commons` are anonymous."""
        return self.server.token if tenant == "demo" else None

    def entries(self) -> list[list[str]]:
        """What was refused or asked so far: tenant, action, call, reason, facts."""
        told = manage(self.server.home, "shell", "-c", READ, env=self.settings)
        assert told.returncode == 0, told.stderr
        [line] = [one for one in told.stdout.splitlines() if one.startswith("entries ")]
        found: list[list[str]] = json.loads(line.removeprefix("entries "))
        return found

    def logged(self) -> list[dict[str, Any]]:
        """The lines of the log that say of a misuse."""
        lines = [
            json.loads(one) for one in self.server.log.read_text().splitlines() if one[:1] == "{"
        ]
        return [one for one in lines if one.get("event") == LOGGED]


@contextmanager
def _hostile(folder: Path, **settings: str) -> Iterator[Hostile]:
    tools, home = folder / "tools", folder / "home"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBE, tools)
    all_settings = {"MCPHOST_TOOLS_PATH": str(tools), "MCPHOST_LOG_FORMAT": "json", **settings}
    for command in (("init", "--demo"), ("shell", "-c", PUBLISH)):
        done = manage(home, *command, env=all_settings)
        assert done.returncode == 0, done.stderr
    with serving("uvicorn", home, **all_settings) as server:
        yield Hostile(server, all_settings)


@pytest.fixture(scope="module")
def over_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    """Hostile tools on a server over SQLite."""
    with _hostile(tmp_path_factory.mktemp("hostile")) as started:
        yield started


@pytest.fixture(scope="module")
def over_postgresql(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    """The same over a PostgreSQL database of its own."""
    folder = tmp_path_factory.mktemp("hostile-postgresql")
    with backing.database() as url, _hostile(folder, DATABASE_URL=url) as started:
        yield started


@pytest.fixture(params=["over_sqlite", "over_postgresql"])
def hostile(request: pytest.FixtureRequest) -> Hostile:
    """The server over each database in turn."""
    started: Hostile = request.getfixturevalue(request.param)
    return started


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
        """How a client is told to hear by this."""
        return {
            "elicitation_callback": self,
            "sampling_callback": self,
            "list_roots_callback": self,
            "logging_callback": self,
        }


@pytest.mark.parametrize("victim", ["demo", "commons"])
@pytest.mark.parametrize("attackers_era", [MODERN, LEGACY])
@pytest.mark.parametrize("victims_era", [MODERN, LEGACY])
async def test_no_client_is_asked_or_told_anything_by_a_call_of_another_tenant(
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


async def test_code_that_runs_in_no_call_asks_and_tells_nothing_either(hostile: Hostile) -> None:
    heard = Heard()
    url, token = hostile.url("demo"), hostile.token("demo")
    async with (
        connected(url, token, **heard.options) as lender,
        connected(hostile.url("commons"), None) as borrower,
    ):
        name = f"n{next(_numbers)}"
        lending = asyncio.ensure_future(LENDERS["tool"](lender, name))
        tried = json.loads(await _tool("borrows_in_no_call")(borrower, name))
        await borrower.call_tool("wants_back", {"name": name})
        assert await lending == "done"
    assert set(tried) == MEMBERS
    assert all(NO_CALL in error for error in tried.values()), tried
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


def test_on_the_wire_the_victims_stream_has_its_own_answer_and_nothing_else(
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


def test_each_tenants_record_names_its_own_call_and_only_the_log_names_both(
    hostile: Hostile,
) -> None:
    before, lines = len(hostile.entries()), len(hostile.logged())
    name = f"n{next(_numbers)}"
    replies: list[raw.Reply] = []
    capable = {f"{raw.PREFIX}clientCapabilities": CAPABLE}
    message = raw.call("lends", {"name": name}, **capable)
    token = hostile.server.token
    lending = Thread(target=lambda: replies.append(raw.post(hostile.server, message, token)))
    lending.start()
    _borrow_and_return(hostile, name)
    lending.join(raw.PATIENCE)
    assert replies[0].message["result"]["content"][0]["text"] == "done"
    found = hostile.entries()[before:]
    assert {(tenant, action, reason) for tenant, action, _, reason, _ in found} == {
        ("demo", "message.refused", "lent"),
        ("commons", "message.refused", "borrowed"),
    }
    [lent], [borrowed] = (
        {call for tenant, _, call, _, _ in found if tenant == one} for one in ("demo", "commons")
    )
    assert all(lent not in facts and borrowed not in facts for *_, facts in found)
    said = [one for one in hostile.logged()[lines:] if one["misuse"] == "borrowed"]
    assert len(said) == len(MEMBERS)
    assert {(one["call"], one["other_call"]) for one in said} == {(borrowed, lent)}
    assert all(one["tenant_id"] != one["other_tenant_id"] for one in said)
