"""Completion from a list of values (spec: server/utilities/completion)."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Ports

MAX_VALUES = 100
"""As many as the protocol lets an answer hold."""


def completion(values: Sequence[str]) -> dict[str, Any]:
    """The result of `completion/complete` for all values that fit: the first hundred of them."""
    shown = list(values[:MAX_VALUES])
    told = {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}
    return {"completion": told}


def fitting(choices: Sequence[str], typed: str) -> list[str]:
    """The choices that begin with what was typed, then those that have it in them."""
    wanted = typed.casefold()
    within = [choice for choice in choices if wanted in choice.casefold()]
    return sorted(within, key=lambda choice: not choice.casefold().startswith(wanted))


class Choices:
    """A program that completes each argument from the values it may have."""

    def __init__(self, by_argument: Mapping[str, Sequence[str]]) -> None:
        self._by_argument = by_argument

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        argument = call.arguments["argument"]
        choices = self._by_argument.get(argument["name"], ())
        return Complete(completion(fitting(choices, argument["value"])))
