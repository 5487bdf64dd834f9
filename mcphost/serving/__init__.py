"""The MCP server: methods, the execution of calls, sessions, subscriptions."""
