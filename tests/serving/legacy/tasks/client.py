"""A client of a session that calls tools as tasks, on revision 2025-11-25."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.cast import Person
from tests.legacy import Posted, Session, begin, message
from tests.mcp import Reply
from tests.wire import RELATED_TASK, SESSION_TASKS

TERMINAL = frozenset({"completed", "failed", "cancelled"})
PATIENCE = 30.0
EVERYTHING: Mapping[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}},
    "roots": {},
}
OF_TASKS = ("tasks/get", "tasks/result", "tasks/cancel")
"""The methods that name a task."""

Seen = Mapping[str, Any]
"""A task as `tasks/get` shows it."""


def accept(**content: Any) -> dict[str, Any]:
    """The answer to a form."""
    return {"action": "accept", "content": content}


RED = accept(colour="red")
BLUE = accept(colour="blue")


@dataclass(frozen=True)
class TaskClient:
    """A client with a session. Its requests have different ids."""

    session: Session
    _ids: "count[int]" = field(default_factory=lambda: count(1))

    def message(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A request with an id of its own."""
        found: dict[str, Any] = message(method, params, next(self._ids))
        return found

    def calling(self, tool: str, task: Any = None, **arguments: Any) -> dict[str, Any]:
        """A call of a tool; with `task`, as one."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        return self.message("tools/call", params if task is None else {**params, "task": task})

    async def ask(self, method: str, **params: Any) -> Reply:
        return await self.session.send(self.message(method, params))

    async def call(self, tool: str, task: Any = None, **arguments: Any) -> Reply:
        return await self.session.send(self.calling(tool, task, **arguments))

    async def begin(self, tool: str, **arguments: Any) -> "Task":
        """Call a tool as a task."""
        return self.task_of(await self.call(tool, {}, **arguments))

    def task_of(self, reply: Reply) -> "Task":
        """The task whose handle the reply must be."""
        assert reply.status == 200, reply.raw
        assert not reply.streamed
        assert set(reply.result) == {"task"}, reply.result
        return Task(self, reply.result["task"])

    def known(self, id: str) -> "Task":
        """A task of which only the id is known."""
        return Task(self, {"taskId": id})

    async def answer(self, question: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Answer a question, which is accepted."""
        body = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        reply = await self.session.send(body)
        assert (reply.status, reply.raw) == (202, b"")

    async def pages(self) -> list[list[str]]:
        """The ids that `tasks/list` returns, page by page."""
        page = (await self.ask("tasks/list")).result
        found = [[one["taskId"] for one in page["tasks"]]]
        while "nextCursor" in page:
            page = (await self.ask("tasks/list", cursor=page["nextCursor"])).result
            found.append([one["taskId"] for one in page["tasks"]])
        return found

    async def listed(self) -> set[str]:
        """The ids of all tasks that `tasks/list` returns."""
        return {id for page in await self.pages() for id in page}


@dataclass(frozen=True)
class Task:
    """A task of this client, with what it was told of it first."""

    client: TaskClient
    handle: Seen

    @property
    def id(self) -> str:
        id: str = self.handle["taskId"]
        return id

    async def get(self) -> Seen:
        reply = await self.client.ask("tasks/get", taskId=self.id)
        assert reply.status == 200, reply.raw
        assert not reply.streamed
        assert reply.result["taskId"] == self.id
        return reply.result

    async def until(self, there: Callable[[Seen], object]) -> Seen:
        """Poll until the task is as wanted."""
        seen: Seen = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while not there(seen := await self.get()):  # noqa: ASYNC110 - it is a poll
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"it stays {seen}") from None
        return seen

    async def reaches(self, *statuses: str) -> Seen:
        return await self.until(lambda seen: seen["status"] in statuses)

    async def ended(self) -> Seen:
        return await self.reaches(*TERMINAL)

    async def cancel(self) -> Seen:
        reply = await self.client.ask("tasks/cancel", taskId=self.id)
        assert reply.status == 200, reply.raw
        assert reply.result["taskId"] == self.id
        return reply.result

    async def result(self) -> Reply:
        """The whole reply to `tasks/result`."""
        return await self.client.ask("tasks/result", taskId=self.id)

    async def text(self) -> str:
        """The text of the result, which must be no error."""
        return self.text_of((await self.result()).last)

    def text_of(self, response: Mapping[str, Any]) -> str:
        """The text of a response to `tasks/result`, which must be a result without an error."""
        assert "result" in response, response
        result = response["result"]
        assert not result.get("isError"), result
        assert result["_meta"] == {RELATED_TASK: {"taskId": self.id}}
        text: str = result["content"][0]["text"]
        return text

    @asynccontextmanager
    async def following(self, client: TaskClient | None = None) -> AsyncIterator["Following"]:
        """Send `tasks/result`, read what it sends inside the block, then disconnect."""
        client = client or self.client
        body = client.message("tasks/result", {"taskId": self.id})
        async with client.session.begun(body) as posted:
            yield Following(self, posted, body["id"])


@dataclass(frozen=True)
class Following:
    """One `tasks/result` in progress."""

    task: Task
    posted: Posted
    request: int

    async def asked(self) -> dict[str, Any]:
        """The next message, which must be a form of this task."""
        found = await self.posted.message()
        assert found.get("method") == "elicitation/create", found
        assert found["params"]["_meta"] == {RELATED_TASK: {"taskId": self.task.id}}
        return found

    async def response(self) -> dict[str, Any]:
        """The response, which must be the next and the last message."""
        reply = await self.posted.done()
        if not reply.streamed:
            return reply.check().last
        found = await self.posted.message()
        assert "method" not in found, found
        assert self.posted.unread == b""
        return found

    async def text(self) -> str:
        """The text of the result, which must be the next and the last message."""
        return self.task.text_of(await self.response())


async def client_of(
    person: Person | None,
    tenant: str = "acme",
    revision: str = SESSION_TASKS,
    **capabilities: Any,
) -> TaskClient:
    """A client that has begun a session; without a person, an anonymous one."""
    token = None if person is None else person.mcp_token
    said = capabilities or EVERYTHING
    return TaskClient(await begin(tenant, token, revision, **said))


def refused(reply: Reply, code: int) -> Reply:
    """The reply, which must be an error with this code."""
    assert reply.error["code"] == code, reply.raw
    return reply
