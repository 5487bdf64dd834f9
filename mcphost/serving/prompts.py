"""`prompts/list` and `prompts/get` (spec: server/prompts)."""

from collections.abc import Mapping
from typing import Any

from mcphost.catalogue.selectors import PromptSnapshot
from mcphost.protocol.errors import invalid_params, shown
from mcphost.protocol.prompts import check_arguments
from mcphost.serving import finding, pages, policy, running
from mcphost.serving.identification import server_info
from mcphost.serving.incoming import Incoming
from mcphost.serving.replies import finish
from mcphost.serving.snapshots import offering
from mcphost.serving.streams import Stream


def _name(prompt: PromptSnapshot) -> str:
    return prompt.name


async def list_prompts(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """One page of the prompts that the caller may know of, ordered by name."""
    start = await pages.after(incoming)
    offered = (await offering(incoming.tenant.id)).prompts
    return await pages.page(incoming, start, "prompts", offered, _name)


async def get_prompt(incoming: Incoming, stream: Stream) -> Mapping[str, Any]:
    """The messages of a prompt, with the caller's arguments in them."""
    policy.require_scope(incoming.principal, policy.CALL)
    params = incoming.exchange.params
    name, arguments = params["name"], params.get("arguments") or {}
    prompt = finding.prompt(await offering(incoming.tenant.id), name, incoming.principal.scopes)
    if prompt is None:
        raise invalid_params(f"Unknown prompt: {shown(name)}")
    problem = check_arguments(prompt.arguments, arguments)
    if problem is not None:
        raise invalid_params(problem)
    reply = await running.run(incoming, prompt, prompt.name, arguments, stream)
    said = {key: prompt.listing[key] for key in ("description",) if key in prompt.listing}
    return finish(reply, server_info(incoming.tenant), lambda result: {**said, **result})
