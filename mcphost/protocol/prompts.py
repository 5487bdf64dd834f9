"""Descriptions of prompts for clients (spec: server/prompts, "Prompt")."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt. Its value is always a string."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class PromptListing:
    """The entry of a prompt in `prompts/list`. Empty fields are left out."""

    name: str
    title: str = ""
    description: str = ""
    arguments: Sequence[PromptArgument] = ()
    icons: Sequence[Mapping[str, Any]] = ()


def describe_prompt(listing: PromptListing) -> dict[str, Any]:
    """Return the prompt in wire format."""
    prompt: dict[str, Any] = {"name": listing.name}
    if listing.title:
        prompt["title"] = listing.title
    if listing.description:
        prompt["description"] = listing.description
    if listing.arguments:
        prompt["arguments"] = []
        for argument in listing.arguments:
            described: dict[str, Any] = {"name": argument.name}
            if argument.title:
                described["title"] = argument.title
            if argument.description:
                described["description"] = argument.description
            prompt["arguments"].append({**described, "required": argument.required})
    if listing.icons:
        prompt["icons"] = list(listing.icons)
    return prompt


def check_arguments(declared: Sequence[PromptArgument], arguments: Mapping[str, str]) -> str | None:
    """Return the problem with the arguments of a `prompts/get`, or None."""
    names = {argument.name for argument in declared}
    unknown = [name for name in arguments if name not in names]
    if unknown:
        takes = ", ".join(argument.name for argument in declared) or "none"
        first = ", ".join(repr(name[:40]) for name in unknown[:3])
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        return f"params.arguments has {first}{more}, which the prompt does not take ({takes})"
    missing = [
        argument.name
        for argument in declared
        if argument.required and argument.name not in arguments
    ]
    if missing:
        return f"params.arguments is missing {', '.join(missing)}"
    return None
