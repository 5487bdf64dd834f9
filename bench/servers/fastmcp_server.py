"""FastMCP at its fastest: JSON responses, stateless, logs silent. Runs in an environment of its own."""

import sys

import uvicorn
from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool(output_schema=None)
async def echo(text: str) -> str:
    """Say the same again."""
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
