"""`@complete`: suggestions for the arguments of prompts and the variables of templates (spec:
server/utilities/completion)."""

from collections.abc import Callable
from typing import Any

from mcphost.sdk.marking import ATTRIBUTE, Function

Completers = dict[str, Callable[..., Any]]
"""The completer functions, by argument."""


def complete(of: Callable[..., Any], argument: str) -> Callable[[Function], Function]:
    """Suggest values for an argument of a prompt, or a variable of a template.

    The function gets the text typed so far and, if it has parameters of their names, the arguments
    that were filled in before. It returns strings, the best first. Arguments annotated with
    Literal, bool or an Enum need no completer. Raises TypeError for a function that is neither a
    prompt nor a template.
    """
    completers: Completers | None = getattr(getattr(of, ATTRIBUTE, None), "completers", None)
    if completers is None:
        raise TypeError("@complete is for functions that are marked @prompt or @resource")

    def offer(function: Function) -> Function:
        completers[argument] = function
        return function

    return offer
