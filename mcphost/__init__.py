"""mcphost: a hosted, multi-tenant MCP server platform on Django and Channels."""

__version__ = "0.1.0"
