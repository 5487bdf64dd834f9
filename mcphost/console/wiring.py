"""End live lists when the drain of the process begins."""

from mcphost.console.live import hub
from mcphost.serving.shutdown import on_drain

on_drain(hub.drain)
