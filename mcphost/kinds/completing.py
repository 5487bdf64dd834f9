"""Completion from a list of values (spec: server/utilities/completion)."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Ports

MAX_VALUES = 100
"""The protocol's limit for one result."""


def completion(values: Sequence[str]) -> dict[str, Any]:
    """Build the result of `completion/complete` for the matching values: the first hundred of them."""
    shown = list(values[:MAX_VALUES])
    page = {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}
    return {"completion": page}


def fitting(choices: Sequence[str], typed: str) -> list[str]:
    """Return the choices that begin with the typed text, then those that contain it."""
    needle = typed.casefold()
    within = [choice for choice in choices if needle in choice.casefold()]
    return sorted(within, key=lambda choice: not choice.casefold().startswith(needle))


class Choices:
    """A program that completes each argument from its list of values."""

    def __init__(self, by_argument: Mapping[str, Sequence[str]]) -> None:
        self._by_argument = by_argument

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        argument = call.arguments["argument"]
        choices = self._by_argument.get(argument["name"], ())
        return Complete(completion(fitting(choices, argument["value"])))
