"""An example request for each sort of thing, with values that fit."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.console import clients, examples
from mcphost.kinds.sorts import Sort

Choices = Mapping[str, Sequence[str]]
"""What is suggested for arguments or variables, by name."""

_EXPRESSION = re.compile(r"\{([+?]?)([^{}]*)\}")


def curl(sort: Sort, url: str, listing: Mapping[str, Any], choices: Choices) -> str:
    """A request for what is listed so, ready to be pasted; empty when there is no listing."""
    if not listing:
        return ""
    name = str(listing.get("name", ""))
    match sort:
        case Sort.TOOL:
            arguments = examples.arguments(listing.get("inputSchema", {}))
            return clients.curl(url, "tools/call", name, {"name": name, "arguments": arguments})
        case Sort.PROMPT:
            filled = prompt_arguments(listing, choices)
            return clients.curl(url, "prompts/get", name, {"name": name, "arguments": filled})
        case _:
            uri = example_uri(listing, choices)
            return clients.curl(url, "resources/read", uri, {"uri": uri})


def prompt_arguments(listing: Mapping[str, Any], choices: Choices) -> dict[str, str]:
    """A value for each argument of a prompt that has to be there, or has suggestions."""
    return {
        each["name"]: _value(each["name"], choices)
        for each in listing.get("arguments", ())
        if each.get("required") or choices.get(each["name"])
    }


def example_uri(listing: Mapping[str, Any], choices: Choices) -> str:
    """The URI of a resource, or one that a template answers."""
    if "uri" in listing:
        return str(listing["uri"])
    return _EXPRESSION.sub(
        lambda match: _expanded(match[1], match[2], choices), str(listing.get("uriTemplate", ""))
    )


def _expanded(operator: str, names: str, choices: Choices) -> str:
    if operator == "?":
        return "?" + "&".join(f"{name}={_value(name, choices)}" for name in names.split(","))
    return _value(names, choices)


def _value(name: str, choices: Choices) -> str:
    suggested = choices.get(name)
    return suggested[0] if suggested else name
