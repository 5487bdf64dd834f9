"""The interface of programs: a tool is a program that runs in rounds."""

from enum import StrEnum
from typing import Protocol

from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Outcome
from mcphost.runtime.ports import Ports


class TaskSupport(StrEnum):
    """When a call of a tool becomes a task, which its client follows with requests of their own.

    `NEVER`: not at all. `SLOW`: once it has run for a while, or when the tool says so. `ALWAYS`: at
    once. All of these only for clients that can follow tasks. `REQUIRED`: at once, and other clients
    are refused.
    """

    NEVER = "never"
    SLOW = "slow"
    ALWAYS = "always"
    REQUIRED = "required"


class Program(Protocol):
    """Something that runs until it is finished, or until it needs a missing answer."""

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Run one round. Never raises for an error of the tool; cancellation passes through."""
