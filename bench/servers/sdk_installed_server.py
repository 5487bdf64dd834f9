"""The official Python SDK's server as its quick start writes it, in an environment with the SDK alone."""

import sys

from mcp.server import MCPServer

mcp = MCPServer("bench")


@mcp.tool()
def echo(text: str) -> str:
    """Say the same again."""
    return text


if __name__ == "__main__":
    mcp.run(transport="streamable-http", port=int(sys.argv[1]))
