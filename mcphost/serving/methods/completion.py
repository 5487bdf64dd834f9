"""`completion/complete` (spec: server/utilities/completion).

Completions are not recorded: they change nothing, and clients request one with every key press.
They count against the caller's limits like calls.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mcphost.catalogue.selectors import Offering, PromptSnapshot, TemplateSnapshot
from mcphost.protocol import results
from mcphost.protocol.errors import invalid_params, shown
from mcphost.serving import lookups, policy
from mcphost.serving.context import Incoming
from mcphost.serving.execution import calls
from mcphost.serving.lookups import offering
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import server_info

MAX_VALUES = 100
NOTHING: Mapping[str, Any] = {"completion": {"values": [], "total": 0, "hasMore": False}}


async def complete(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Suggest values for one argument of a prompt or one variable of a resource template."""
    policy.require_scope(incoming.principal, policy.CALL)
    params = incoming.exchange.params
    referenced, names = _referred(await offering(incoming.tenant.id), params["ref"], incoming)
    argument = params["argument"]
    if argument["name"] not in names:
        takes = ", ".join(names) or "none"
        raise invalid_params(
            f"params.argument.name: {shown(argument['name'])} is not one of them ({takes})"
        )
    result = NOTHING
    if referenced is not None and referenced.completer is not None:
        filled = (params.get("context") or {}).get("arguments") or {}
        filled_arguments = {name: value for name, value in filled.items() if name in names}
        arguments = {
            "argument": {"name": argument["name"], "value": argument["value"]},
            "context": {"arguments": filled_arguments},
        }
        completing = replace(referenced, program=referenced.completer)
        turn = calls.turn_of(incoming, completing, referenced.name, arguments)
        result = await calls.run_unrecorded(turn, stream)
        values = result["completion"]["values"]
        if len(values) > MAX_VALUES:
            total = max(len(values), result["completion"].get("total", 0))
            result = {
                "completion": {"values": values[:MAX_VALUES], "total": total, "hasMore": True}
            }
    return results.complete(result, server_info(incoming.tenant.title, incoming.tenant.icon))


def _referred(
    offered: Offering, ref: Mapping[str, Any], incoming: Incoming
) -> tuple[PromptSnapshot | TemplateSnapshot | None, Collection[str]]:
    """The prompt or template of a reference and the names of its arguments.

    A resource is (None, ()): it has no arguments. Raises ProtocolError (INVALID_PARAMS) when there
    is none, or the caller may not know of it.
    """
    scopes = incoming.principal.scopes
    if ref["type"] == "ref/prompt":
        prompt = lookups.prompt(offered, ref["name"], scopes)
        if prompt is None:
            raise invalid_params(f"params.ref.name: Unknown prompt: {shown(ref['name'])}")
        return prompt, [argument.name for argument in prompt.arguments]
    template = lookups.template(offered, ref["uri"], scopes)
    if template is not None:
        return template, template.uri_template.variables
    # What cannot be a URI is most often a template that does not exist or is not visible.
    with suppress(ValueError):
        if lookups.resource(offered, ref["uri"], scopes) is not None:
            return None, ()
    message = f"params.ref.uri: Unknown resource template: {shown(ref['uri'])}"
    raise invalid_params(message, {"uri": ref["uri"]})
