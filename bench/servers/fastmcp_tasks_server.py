"""FastMCP with its package of tasks, as one process has it by default: a queue in memory, and a worker in
the server. JSON responses, stateless, logs silent. Runs in an environment of its own."""

import sys

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

SURE = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}},
    "required": ["sure"],
}

server = FastMCP("bench")
server.add_extension(TasksExtension())


@server.tool(output_schema=None)
async def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool(task=True, output_schema=None)
async def echo_later(text: str) -> str:
    """The same, as a task."""
    return text


@server.tool(task=True, output_schema=None)
async def ask_later(ctx: Context, text: str) -> str | InputRequiredResult:
    """Asks, and says the same again, as a task; a question leaves no round that waits."""
    if not ctx.input_responses:
        params = ElicitRequestFormParams(message="Are you sure?", requested_schema=SURE)
        return InputRequiredResult(input_requests={"sure": ElicitRequest(params=params)})
    return text


if __name__ == "__main__":
    uvicorn.run(
        server.http_app(path="/mcp", json_response=True, stateless_http=True),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
