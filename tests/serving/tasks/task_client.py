"""A client that follows tasks: it calls tools, and gets, updates and cancels what comes of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast
from tests.mcp import Exchange, Reply, begun, header_value, request, send
from tests.rounds.conftest import module

EXTENSION = "io.modelcontextprotocol/tasks"
ASKABLE: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}
ABLE: Mapping[str, Any] = {**ASKABLE, "extensions": {EXTENSION: {}}}
MISSING: Mapping[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
TERMINAL = frozenset({"completed", "failed", "cancelled"})
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")
PATIENCE = 30.0

Seen = Mapping[str, Any]
"""A task as `tasks/get` shows it."""


def accept(**content: Any) -> dict[str, Any]:
    """The answer to a form."""
    return {"action": "accept", "content": content}


RED = {"colour": accept(colour="red")}
BLUE = {"colour": accept(colour="blue")}


@dataclass(frozen=True)
class Follower:
    """A client of one tenant, with or without a token."""

    token: str | None
    tenant: str = "acme"
    capabilities: Mapping[str, Any] = field(default_factory=lambda: ABLE)

    def unable(self) -> "Follower":
        """The same client without the extension."""
        return replace(self, capabilities=ASKABLE)

    def message(self, method: str, params: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
        return request(method, params, capabilities=dict(self.capabilities), **meta)

    async def send(self, method: str, params: Mapping[str, Any], **meta: Any) -> Reply:
        body = self.message(method, params, **meta)
        id = params.get("taskId")
        routed = {"mcp-name": header_value(id)} if isinstance(id, str) else {}
        return await send(self.tenant, body, self.token, routed)

    async def call(self, tool: str, **arguments: Any) -> Reply:
        return await self.send("tools/call", {"name": tool, "arguments": arguments})

    async def begin(self, tool: str, **arguments: Any) -> "Task":
        """Call a tool, of which a task must come."""
        return Task(self, handle(await self.call(tool, **arguments)))

    async def about(self, method: str, id: str) -> Reply:
        """Get, update or cancel a task. An update has an answer."""
        answers = {"inputResponses": RED} if method == "tasks/update" else {}
        return await self.send(method, {"taskId": id, **answers})


@dataclass(frozen=True)
class Task:
    """A task of this client, with the handle that it got."""

    follower: Follower
    handle: Seen

    @property
    def id(self) -> str:
        id: str = self.handle["taskId"]
        return id

    async def get(self) -> Seen:
        reply = await self.follower.send("tasks/get", {"taskId": self.id})
        assert reply.status == 200, reply.raw
        assert reply.result["resultType"] == "complete"
        return reply.result

    async def update(self, responses: Any) -> None:
        """Send answers, which are acknowledged."""
        params = {"taskId": self.id, "inputResponses": responses}
        acknowledged(await self.follower.send("tasks/update", params))

    async def cancel(self) -> None:
        acknowledged(await self.follower.send("tasks/cancel", {"taskId": self.id}))

    async def until(self, there: Callable[[Seen], object]) -> Seen:
        """Poll until the task is as wanted."""
        pause, seen = 0.01, await self.get()
        try:
            async with asyncio.timeout(PATIENCE):
                while not there(seen):
                    await asyncio.sleep(pause)
                    pause, seen = min(2 * pause, 0.1), await self.get()
        except TimeoutError:
            raise AssertionError(f"it stays {seen}") from None
        return seen

    async def asked(self, *keys: str) -> Mapping[str, Any]:
        """Wait until exactly these questions are outstanding; return them by key."""
        seen = await self.until(lambda seen: set(seen.get("inputRequests", ())) == set(keys))
        assert seen["status"] == "input_required"
        requests: Mapping[str, Any] = seen["inputRequests"]
        return requests

    async def ended(self) -> Seen:
        return await self.until(lambda seen: seen["status"] in TERMINAL)

    async def text(self) -> str:
        """The text of the result, once it has completed without an error."""
        seen = await self.ended()
        assert seen["status"] == "completed", seen
        assert not seen["result"].get("isError"), seen
        text: str = seen["result"]["content"][0]["text"]
        return text

    async def failure(self) -> str:
        """The text of the result, once it has completed with an error of the tool."""
        seen = await self.ended()
        assert (seen["status"], seen["result"].get("isError")) == ("completed", True), seen
        text: str = seen["result"]["content"][0]["text"]
        return text


def handle(reply: Reply) -> Seen:
    """The handle in a reply that must be one."""
    assert reply.status == 200, reply.raw
    assert reply.result["resultType"] == "task", reply.result
    return reply.result


def done(reply: Reply) -> str:
    """The text of a reply that must be the plain end of a call."""
    assert reply.status == 200, reply.raw
    assert reply.result["resultType"] == "complete", reply.result
    assert not reply.result.get("isError"), reply.result
    return reply.text


def acknowledged(reply: Reply) -> None:
    """It must be the empty acknowledgement."""
    assert reply.status == 200, reply.raw
    assert own(reply.result) == {"resultType": "complete"}


def own(result: Mapping[str, Any], *but: str) -> dict[str, Any]:
    """The members of a result without `_meta` and those named."""
    return {name: one for name, one in result.items() if name not in ("_meta", *but)}


def unable(reply: Reply) -> bytes:
    """The refusal of a client without the extension, as it went over the wire."""
    assert (reply.status, reply.error["code"]) == (400, -32021), reply.raw
    assert reply.error["data"] == MISSING
    return reply.raw


def unknown(reply: Reply) -> bytes:
    """The one refusal of ids, as it went over the wire."""
    assert reply.error["code"] == -32602, reply.raw
    return b"%d %s" % (reply.status, reply.raw)


async def happened(name: str) -> None:
    """Wait until an event of the probes is set: running, cancelled."""
    async with asyncio.timeout(PATIENCE):
        await getattr(module("tasks"), name).wait()


def did() -> list[str]:
    """What the probes did."""
    done: list[str] = module("tasks").did
    return done


def release() -> None:
    """Let the probes go on."""
    module("tasks").release.set()


@asynccontextmanager
async def full(cast: Cast, follower: Follower, **more: Any) -> AsyncIterator[None]:
    """One call of this client takes the only place among the concurrent calls at `acme`."""
    fields = TenantFields(title="Acme", concurrent_calls=1, **more)
    await in_database(update_tenant, cast.acme.id, fields, actor=ACTOR)
    body = follower.unable().message("tools/call", {"name": "slow", "arguments": {}})
    async with begun(follower.tenant, body, follower.token) as exchange:
        await happened("running")
        yield
        release()
        await exchange.done()


@dataclass
class Watching:
    """A stream with the notifications of tasks."""

    exchange: Exchange
    honoured: Mapping[str, Any]

    async def told(self) -> Seen:
        """The next notification, which must be of a task: the task."""
        message = await self.exchange.message()
        assert message.get("method") == "notifications/tasks", message
        params: Seen = message["params"]
        return params

    async def until(self, there: Callable[[Seen], object]) -> list[Seen]:
        """All notifications up to the first that is as wanted."""
        heard = [await self.told()]
        while not there(heard[-1]):
            heard.append(await self.told())
        return heard


@asynccontextmanager
async def watching(
    follower: Follower, ids: Collection[str], **more: Any
) -> AsyncIterator[Watching]:
    """Listen to tasks (and whatever else), and await the acknowledgement."""
    wanted = {"notifications": {"taskIds": list(ids), **more}}
    body = follower.message("subscriptions/listen", wanted)
    async with begun(follower.tenant, body, follower.token) as exchange:
        message = await exchange.message()
        assert message["method"] == "notifications/subscriptions/acknowledged", message
        yield Watching(exchange, message["params"]["notifications"])
