"""What MCP messages mean. No I/O: no clock, no logging, no asyncio."""
