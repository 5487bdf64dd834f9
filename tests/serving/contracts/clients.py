"""One client for each delivery, with the same methods for a call of the tool."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

import orjson

from mcphost.catalogue import selectors
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution import trials
from mcphost.serving.execution.trials import TrialEndedError, TrialRequest
from mcphost.serving.legacy.cancellation import cancellations
from mcphost.tenants.models import Tenant
from tests.cast import Cast
from tests.mcp import Reply, begun
from tests.rounds.client_steps import Asker, asked, calling, state_of
from tests.serving.contracts.offers import TOOL, TURNS
from tests.serving.legacy.callers import PATIENCE, Caller, Shown
from tests.serving.legacy.tasks.client import client_of
from tests.serving.tasks.task_client import Follower, Task

Result = Mapping[str, Any]


def _key(message: str) -> str:
    """Return the key of a question of the tool, whose message is the key and a question mark. What comes
    after that is why the last response was not accepted."""
    return message.partition("?")[0]


class Client(Protocol):
    """A client with one call. `result` returns `CallToolResult`, or {"error": …} for an error
    response. `shown` are the messages of the questions that were last asked."""

    shown: list[str]

    async def begin(self, do: str) -> None:
        """Call the tool."""

    async def asked(self, *keys: str) -> None:
        """Wait until exactly these questions are asked and not answered."""

    async def answer(self, **answers: Mapping[str, Any]) -> None:
        """Answer questions."""

    async def result(self) -> Result: ...

    async def cancel(self) -> None: ...


class Renewing(Client, Protocol):
    """A client whose credential is replaced while its call goes on."""

    async def present(self, bearer: str) -> None:
        """Present this credential from now on."""


class Modern:
    """A stateless client: each answer is a request of its own."""

    shown: list[str]

    def __init__(self, cast: Cast, stack: AsyncExitStack) -> None:
        self._token = cast.owner.mcp_token
        self._stack = stack
        self._asker: Asker | None = None
        self._reply: Reply | None = None

    async def begin(self, do: str) -> None:
        self._asker = calling(self._token, TOOL, do=do)
        if do == "hang":
            body = self._asker.message()
            self._exchange = await self._stack.enter_async_context(begun("acme", body, self._token))
        else:
            self._reply = await self._asker.leg()

    async def asked(self, *keys: str) -> None:
        assert self._reply is not None
        found = asked(self._reply)
        self.shown = [one["params"]["message"] for one in found.values()]
        assert {key: _key(one["params"]["message"]) for key, one in found.items()} == {
            key: key for key in keys
        }

    async def answer(self, **answers: Mapping[str, Any]) -> None:
        assert self._asker is not None and self._reply is not None
        self._reply = await self._asker.leg(state_of(self._reply), answers)

    async def result(self) -> Result:
        if self._reply is None:
            self._reply = await self._exchange.done()
        return _ended(self._reply)

    async def cancel(self) -> None:
        self._exchange.hang_up()

    async def present(self, bearer: str) -> None:
        assert self._asker is not None
        self._asker = self._asker.but(token=bearer)


class Session:
    """A client of a session: it is asked on the stream of its call."""

    shown: list[str]

    def __init__(self, cast: Cast, stack: AsyncExitStack) -> None:
        self._cast = cast
        self._answered: set[Any] = set()

    async def begin(self, do: str) -> None:
        self._caller = await Caller.at(self._cast)
        self._call = self._caller.call(TOOL, do=do)
        self._shown = Shown()
        if do in TURNS:
            assert await self._call.settled() is None
            self._call.outgoing.attach(self._shown)

    @property
    def question_ids(self) -> list[Any]:
        """The ids of the questions that were asked, in order."""
        return [one["id"] for one in self._shown.requests]

    async def messages(self) -> list[dict[str, Any]]:
        """All messages of the call's stream, once it has ended."""
        return [one for one in await self._shown.whole() if one]

    def _pending(self, shown: Shown) -> dict[str, dict[str, Any]]:
        return {
            _key(one["params"]["message"]): one
            for one in shown.requests
            if one["id"] not in self._answered
        }

    async def asked(self, *keys: str) -> None:
        await self._shown.until(lambda shown: set(self._pending(shown)) == set(keys))
        self.shown = [one["params"]["message"] for one in self._pending(self._shown).values()]

    async def answer(self, **answers: Mapping[str, Any]) -> None:
        pending = self._pending(self._shown)
        for key, answer in answers.items():
            self._answered.add(pending[key]["id"])
            await self._caller.answer(pending[key], answer)

    async def result(self) -> Result:
        response = await self._call.settled()
        last = orjson.loads(response.body) if response else (await self._shown.whole())[-1]
        result: Result = last["result"] if "result" in last else {"error": last["error"]}
        return result

    async def cancel(self) -> None:
        await cancellations.cancel(self._caller.session, 1)

    async def present(self, bearer: str) -> None:
        await self._caller.present(bearer)


class Following:
    """A client that follows tasks."""

    shown: list[str]

    def __init__(self, cast: Cast, stack: AsyncExitStack) -> None:
        self._follower = Follower(cast.owner.mcp_token)

    async def begin(self, do: str) -> None:
        self._task: Task = await self._follower.begin(TOOL, do=do)

    async def asked(self, *keys: str) -> None:
        found = await self._task.asked(*(await self._own(keys)))
        self.shown = [one["params"]["message"] for one in found.values()]
        assert sorted(map(_key, self.shown)) == sorted(keys)

    async def _own(self, keys: tuple[str, ...]) -> list[str]:
        """Return the keys of the task's requests, once all these questions are asked."""
        wanted = set(keys)
        seen = await self._task.until(
            lambda seen: (
                {_key(one["params"]["message"]) for one in seen.get("inputRequests", {}).values()}
                == wanted
            )
        )
        self._keys = {
            _key(one["params"]["message"]): own for own, one in seen["inputRequests"].items()
        }
        return list(seen["inputRequests"])

    async def answer(self, **answers: Mapping[str, Any]) -> None:
        await self._task.update({self._keys[key]: answer for key, answer in answers.items()})

    async def result(self) -> Result:
        seen = await self._task.ended()
        result: Result = seen["result"] if "result" in seen else {"error": seen.get("error")}
        return result

    async def cancel(self) -> None:
        await self._task.cancel()

    async def present(self, bearer: str) -> None:
        self._follower = replace(self._follower, token=bearer)
        self._task = replace(self._task, follower=self._follower)


class SessionTask:
    """A client of a session that calls the tool as a task: it is asked by `tasks/result`."""

    shown: list[str]

    def __init__(self, cast: Cast, stack: AsyncExitStack) -> None:
        self._owner = cast.owner
        self._stack = stack
        self._pending: dict[str, dict[str, Any]] = {}
        self.question_ids: list[Any] = []

    async def begin(self, do: str) -> None:
        self._client = await client_of(self._owner)
        self._task = await self._client.begin(TOOL, do=do)
        if do in TURNS:
            await self._task.reaches("input_required")
        self._following = await self._stack.enter_async_context(self._task.following())

    async def asked(self, *keys: str) -> None:
        while set(self._pending) != set(keys):
            question = await self._following.asked()
            self._pending[_key(question["params"]["message"])] = question
            self.question_ids.append(question["id"])
        self.shown = [one["params"]["message"] for one in self._pending.values()]

    async def messages(self) -> list[dict[str, Any]]:
        """What comes after the last question, until the response."""
        reply = await self._following.posted.done()
        if not reply.streamed:
            return [reply.check().last]
        messages = [await self._following.posted.message()]
        while "method" in messages[-1]:
            messages.append(await self._following.posted.message())
        return messages

    async def answer(self, **answers: Mapping[str, Any]) -> None:
        for key, answer in answers.items():
            await self._client.answer(self._pending.pop(key), answer)

    async def result(self) -> Result:
        last = (await self.messages())[-1]
        result: Result = last["result"] if "result" in last else {"error": last["error"]}
        return result

    async def cancel(self) -> None:
        await self._task.cancel()

    async def present(self, bearer: str) -> None:
        self._client.session.token = bearer


class Playground:
    """An operator who tries the tool in the console: the form carries all between two rounds."""

    shown: list[str]

    def __init__(self, cast: Cast, stack: AsyncExitStack) -> None:
        self._cast = cast

    async def begin(self, do: str) -> None:
        process.start()
        acme = self._cast.acme.id
        (row,) = await in_database(selectors.primitives, Tenant.objects.filter(pk=acme))
        self._trial = TrialRequest(
            self._cast.operator.user, acme, row.fields, {"do": do}, primitive=row.id
        )
        self._running = asyncio.create_task(trials.run(self._trial))
        if do in TURNS:
            await self._running

    async def asked(self, *keys: str) -> None:
        found = (await self._running).requests
        self.shown = [one["params"]["message"] for one in found.values()]
        assert sorted(map(_key, self.shown)) == sorted(keys)

    async def answer(self, **answers: Mapping[str, Any]) -> None:
        before = await self._running
        carried: dict[str, Any] = {"state": before.state, "tool_state": before.tool_state}
        self._trial = replace(self._trial, responses=answers, **carried)
        self._running = asyncio.create_task(trials.run(self._trial))

    async def result(self) -> Result:
        try:
            done = await self._running
        except TrialEndedError as change:
            return {"error": str(change)}
        if done.error is not None:
            return {"error": done.error.message}
        assert done.result is not None, done
        return done.result

    async def cancel(self) -> None:
        self._running.cancel()


DELIVERIES: Mapping[str, Callable[[Cast, AsyncExitStack], Client]] = {
    "modern": Modern,
    "session": Session,
    "task": Following,
    "session-task": SessionTask,
    "playground": Playground,
}


def _ended(reply: Reply) -> Result:
    if "error" in (message := reply.last):
        return {"error": message["error"]}
    assert reply.result["resultType"] == "complete", reply.result
    return reply.result


@asynccontextmanager
async def client(cast: Cast, delivery: str) -> AsyncIterator[Client]:
    """Yield a client; what it has under way ends with the block."""
    async with AsyncExitStack() as stack, asyncio.timeout(4 * PATIENCE):
        yield DELIVERIES[delivery](cast, stack)
