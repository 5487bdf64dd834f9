"""What an MCP server does, method by method."""
