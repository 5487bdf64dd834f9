"""The official Python SDK's server with tools that ask by `Resolve`, otherwise as `sdk_server.py`.

`python bench/servers/sdk_asking_server.py PORT sessions` is for the clients that open sessions: they are
kept, and a call is answered with an event stream, because its questions come on that.
"""

import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from pydantic import BaseModel

server = MCPServer("bench", log_level="WARNING")


class Sure(BaseModel):
    """The answer to each question."""

    sure: bool


async def sure() -> Elicit[Sure]:
    """Asks the first question."""
    return Elicit("Are you sure?", Sure)


async def still_sure(first: Annotated[Sure, Resolve(sure)]) -> Elicit[Sure]:
    """Asks the second question, once the first is answered."""
    return Elicit("Still sure?" if first.sure else "Sure now?", Sure)


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool(structured_output=False)
async def ask(text: str, answer: Annotated[Sure, Resolve(sure)]) -> str:
    """Asks, and says the same again."""
    return text if answer.sure else ""


# So that this server and ours list as many tools.
server.tool(name="ask_unclaimed", structured_output=False)(ask)


@server.tool(structured_output=False)
async def ask_twice(text: str, answer: Annotated[Sure, Resolve(still_sure)]) -> str:
    """Asks two questions, one after the other, and says the same again."""
    return text if answer.sure else ""


if __name__ == "__main__":
    stateless = sys.argv[2:] != ["sessions"]
    uvicorn.run(
        server.streamable_http_app(json_response=stateless, stateless_http=stateless),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
