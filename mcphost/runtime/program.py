"""A tool is a program that runs in rounds."""

from typing import Protocol

from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Outcome
from mcphost.runtime.ports import Ports


class Program(Protocol):
    """Something that can be run until it is finished, or until it needs an answer it does not have."""

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Run one round. Never raises for what the tool does; cancellation passes through."""
