"""The interface of programs: a tool is a program that runs in rounds."""

from typing import Protocol

from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Outcome
from mcphost.runtime.ports import Ports


class Program(Protocol):
    """Something that runs until it is finished, or until it needs a missing answer."""

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Run one round. Never raises for an error of the tool; cancellation passes through."""
