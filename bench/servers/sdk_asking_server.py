"""The official Python SDK's server with a tool that asks by `Resolve`, otherwise as `sdk_server.py`."""

import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("bench", log_level="WARNING")


class Sure(BaseModel):
    """The one question."""

    sure: bool


async def sure() -> Elicit[Sure]:
    """Asks it."""
    return Elicit("Are you sure?", Sure)


@server.tool(structured_output=False)
async def ask(text: str, answer: Annotated[Sure, Resolve(sure)]) -> str:
    """Asks, and says the same again."""
    return text if answer.sure else ""


if __name__ == "__main__":
    uvicorn.run(
        server.streamable_http_app(json_response=True, stateless_http=True),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
