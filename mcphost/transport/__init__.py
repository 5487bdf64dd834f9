"""HTTP: the MCP endpoint (Streamable HTTP), request checks, event streams, limits on clients."""
