"""An example request for each sort of thing, with values that fit."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from mcphost.console import clients, examples
from mcphost.kinds.sorts import Sort
from mcphost.protocol.uri_templates import UriTemplate

Choices = Mapping[str, Sequence[str]]
"""What is suggested for arguments or variables, by name."""
Values = Mapping[str, str]

_EXPRESSION = re.compile(r"\{([+?]?)([^{}]*)\}")


def choices(config: Mapping[str, Any]) -> Choices:
    """The suggestions in what is written in the console."""
    arguments = {each["name"]: each.get("choices", ()) for each in config.get("arguments", ())}
    return {**arguments, **config.get("choices", {})}


def values(
    sort: Sort, listing: Mapping[str, Any], suggested: Choices, *, of_all: bool
) -> dict[str, str]:
    """A value for each argument of a prompt (or each that is required), or each variable of a
    template. What a function makes of others cannot be told."""
    names: Sequence[str] = ()
    if sort is Sort.PROMPT:
        arguments = listing.get("arguments", ())
        names = [each["name"] for each in arguments if of_all or each.get("required")]
    elif sort is Sort.TEMPLATE and listing:
        names = UriTemplate(listing["uriTemplate"]).variables
    return {name: (suggested.get(name) or (name,))[0] for name in names}


def curl(sort: Sort, url: str, listing: Mapping[str, Any], filled: Values) -> str:
    """A request for what is listed so, ready to be pasted; empty when there is no listing."""
    if not listing:
        return ""
    name = str(listing.get("name", ""))
    if sort is Sort.TOOL:
        arguments = examples.arguments(listing.get("inputSchema", {}))
        return clients.curl(url, "tools/call", name, {"name": name, "arguments": arguments})
    if sort is Sort.PROMPT:
        return clients.curl(url, "prompts/get", name, {"name": name, "arguments": filled})
    uri = str(listing.get("uri") or expanded(listing["uriTemplate"], filled))
    return clients.curl(url, "resources/read", uri, {"uri": uri})


def expanded(template: str, filled: Values) -> str:
    """The URI that a template writes of values."""
    return _EXPRESSION.sub(lambda match: _written(match[1], match[2], filled), template)


def _written(operator: str, names: str, filled: Values) -> str:
    if operator == "?":
        pairs = (f"{name}={quote(filled[name], safe='')}" for name in names.split(","))
        return "?" + "&".join(pairs)
    return quote(filled[names], safe="/" if operator == "+" else "")
