"""Parsing, checking and encoding of MCP messages. No I/O: no clock, no logging, no asyncio."""
