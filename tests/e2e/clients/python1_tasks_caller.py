"""The official Python client before 2.0 with its experimental tasks, in an environment of its own.

It reads and writes lines of JSON as the others of this folder do, and writes first which revision is
spoken and what the server can do with tasks ("met"). Then each line that it reads is one of:

- {"call", "arguments"}: begin a task, poll it as the library does, and get its result as soon as it
  has ended or needs input; it is "done", with the states that were seen;
- {"begin", "arguments"}: begin a task; it has "begun", with the id;
- {"look": id}: how the task is; "seen";
- {"finish": id}: wait for its result, whichever client began it; "done";
- {"cancel": id}: cancel it; "seen";
- {"list": true}: the ids of all tasks; "listed".

Whatever it is asked meanwhile is "asked"; an error is "raised".
"""

import asyncio
from typing import Any

import person
from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client

HOUR_MS = 3_600_000
"""How long tasks are kept; the library would say a minute."""
DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}


async def ask(_: Any, params: Any) -> Any:
    return types.ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def call(session: ClientSession, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    tasks = session.experimental
    id = (await tasks.call_tool_as_task(tool, arguments)).task.taskId
    seen = []
    async for state in tasks.poll_task(id):
        seen.append(state.status)
        if state.status == "input_required":
            break
    return {"done": await result(session, id), "states": seen}


async def result(session: ClientSession, id: str) -> Any:
    found = await session.experimental.get_task_result(id, types.CallToolResult)
    return found.model_dump(**DUMPED)


async def every_task(session: ClientSession) -> list[str]:
    ids: list[str] = []
    cursor = None
    while True:
        page = await session.experimental.list_tasks(cursor)
        ids += [task.taskId for task in page.tasks]
        cursor = page.nextCursor
        if cursor is None:
            return ids


async def do(session: ClientSession, wanted: dict[str, Any]) -> dict[str, Any]:
    tasks = session.experimental
    match wanted:
        case {"call": tool, "arguments": arguments}:
            return await call(session, tool, arguments)
        case {"begin": tool, "arguments": arguments}:
            created = await tasks.call_tool_as_task(tool, arguments, ttl=HOUR_MS)
            return {"begun": created.task.taskId}
        case {"look": id}:
            return {"seen": (await tasks.get_task(id)).model_dump(**DUMPED)}
        case {"finish": id}:
            return {"done": await result(session, id)}
        case {"cancel": id}:
            return {"seen": (await tasks.cancel_task(id)).model_dump(**DUMPED)}
        case {"list": _}:
            return {"listed": await every_task(session)}
        case _:
            return {"raised": f"unknown: {wanted}"}


async def main(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        streamablehttp_client(url, headers=headers) as (reading, writing, _),
        ClientSession(reading, writing, elicitation_callback=ask) as session,
    ):
        met = await session.initialize()
        able = met.capabilities.tasks
        support = {
            tool.name: tool.execution.taskSupport
            for tool in (await session.list_tools()).tools
            if tool.execution is not None
        }
        person.tell(
            met={
                "revision": str(met.protocolVersion),
                "tasks": None if able is None else able.model_dump(**DUMPED),
                "support": support,
            }
        )
        while (wanted := await person.hear()) is not None:
            try:
                person.tell(**await do(session, wanted))
            except Exception as error:  # noqa: BLE001 - whatever a client raises is to be seen
                person.tell(raised=f"{type(error).__name__}: {error}")


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
