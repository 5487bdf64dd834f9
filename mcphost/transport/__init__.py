"""Where and when MCP messages travel: Streamable HTTP, the guard, streams, limits on the wire."""
