"""The official Python SDK's server at its fastest: JSON responses, stateless, logs silent."""

import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", log_level="WARNING")


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Say the same again."""
    return text


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
