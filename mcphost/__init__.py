"""mcphost: a hosted, multi-tenant MCP server platform on Django and Channels."""
