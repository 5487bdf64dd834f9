"""`completion/complete` (spec: server/utilities/completion).

Nothing is recorded of it: it changes nothing, and clients ask with every key that is pressed. It
counts against the caller's limits like a call.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mcphost.catalogue.selectors import Offering, PromptSnapshot, TemplateSnapshot
from mcphost.protocol import results
from mcphost.protocol.errors import ProtocolError, invalid_params, shown
from mcphost.serving import finding, policy, running
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import Stream

MOST = 100
NOTHING: Mapping[str, Any] = {"completion": {"values": [], "total": 0, "hasMore": False}}


async def complete(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """Values that the caller may want for one argument of a prompt or variable of a template."""
    policy.require_scope(incoming.principal, policy.CALL)
    params = incoming.exchange.params
    found, names = _referred(await offering(incoming.tenant.id), params["ref"], incoming)
    argument = params["argument"]
    if argument["name"] not in names:
        takes = ", ".join(names) or "none"
        raise invalid_params(
            f"params.argument.name: {shown(argument['name'])} is not one of them ({takes})"
        )
    result = NOTHING
    if found is not None and found.completer is not None:
        arguments = {
            "argument": {"name": argument["name"], "value": argument["value"]},
            "context": {"arguments": _context(params, names)},
        }
        completing = replace(found, program=found.completer)
        turn = running.turn_of(incoming, completing, found.name, arguments)
        result = _cut(await running.run_unrecorded(turn, stream))
    return results.complete(result, server_info(incoming.tenant))


def _cut(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """As many values as an answer may have, and whether those are all."""
    completion = result["completion"]
    values = completion["values"]
    if len(values) <= MOST:
        return result
    total = max(len(values), completion.get("total", 0))
    return {"completion": {"values": values[:MOST], "total": total, "hasMore": True}}


def _referred(
    offered: Offering, ref: Mapping[str, Any], incoming: Incoming
) -> tuple[PromptSnapshot | TemplateSnapshot | None, Collection[str]]:
    """What a reference is to, with the names of its arguments; None for a resource, which has none.

    Raises ProtocolError (INVALID_PARAMS) for what the caller may not know of, and for nothing.
    """
    scopes = incoming.principal.scopes
    if ref["type"] == "ref/prompt":
        prompt = finding.prompt(offered, ref["name"], scopes)
        if prompt is None:
            raise invalid_params(f"params.ref.name: Unknown prompt: {shown(ref['name'])}")
        return prompt, [argument.name for argument in prompt.arguments]
    template = finding.template(offered, ref["uri"], scopes)
    if template is not None:
        return template, template.uri_template.variables
    if _is_resource(offered, ref["uri"], scopes):
        return None, ()
    raise _unknown(ref["uri"])


def _is_resource(offered: Offering, uri: str, scopes: finding.Scopes) -> bool:
    try:
        return finding.resource(offered, uri, scopes) is not None
    except ValueError:  # most often a template, which nobody may know of
        return False


def _unknown(uri: str) -> ProtocolError:
    message = f"params.ref.uri: Unknown resource template: {shown(uri)}"
    return invalid_params(message, {"uri": uri})


def _context(params: Mapping[str, Any], names: Collection[str]) -> dict[str, str]:
    """What was filled in already, of arguments that there are."""
    filled = (params.get("context") or {}).get("arguments") or {}
    return {name: value for name, value in filled.items() if name in names}
