"""FastMCP's client with its package of tasks, in an environment of its own.

It reads and writes lines of JSON as the others of this folder do, and writes the revision first
("met"). Then each line that it reads is one of:

- {"call", "arguments"}: the whole call, as its user sees it; it is "done";
- {"begin", "arguments"}: the same until there is a handle; it has "begun", with the id;
- {"look": id}: how the task is; "seen";
- {"finish": id, "tool"}: follow a task to its end, whichever client began it; "done";
- {"cancel": id}: cancel it and wait for its end; "seen".

Whatever it is asked meanwhile is "asked"; an error is "raised".
"""

import asyncio
from typing import Any

import person
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp_tasks import ToolTask, call_tool_task
from fastmcp_tasks.client_models import ClientCreateTaskResult

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}
PATIENCE = 40


async def ask(_: str, __: Any, params: Any, ___: Any) -> ElicitResult[Any]:
    return ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


def known(client: Any, id: str, tool: str = "") -> ToolTask:
    """A task of which only the id is known."""
    fields = {"resultType": "task", "taskId": id, "status": "working"}
    times = {"createdAt": "", "lastUpdatedAt": ""}
    return ToolTask(client, tool, ClientCreateTaskResult.model_validate({**fields, **times}))


async def do(client: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    match wanted:
        case {"call": tool, "arguments": arguments}:
            return {"done": _text(await client.call_tool(tool, arguments))}
        case {"begin": tool, "arguments": arguments}:
            return {"begun": (await call_tool_task(client, tool, arguments)).task_id}
        case {"look": id}:
            return {"seen": (await known(client, id).status()).model_dump(**DUMPED)}
        case {"finish": id, "tool": tool}:
            return {"done": _text(await known(client, id, tool).result())}
        case {"cancel": id}:
            task = known(client, id)
            await task.cancel()
            return {"seen": (await task.wait(timeout=PATIENCE)).model_dump(**DUMPED)}
        case _:
            return {"raised": f"unknown: {wanted}"}


def _text(result: Any) -> str:
    text: str = result.content[0].text
    return text


async def main(url: str, token: str) -> None:
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    async with Client(transport, elicitation_handler=ask) as client:
        person.tell(met={"revision": client.session.protocol_version})
        while (wanted := await person.hear()) is not None:
            try:
                person.tell(**await do(client, wanted))
            except Exception as error:  # noqa: BLE001 - whatever a client raises is to be seen
                person.tell(raised=f"{type(error).__name__}: {error}")


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
