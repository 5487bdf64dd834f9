"""`prompts/list` and `prompts/get` (spec: server/prompts)."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from mcphost.protocol.errors import invalid_params, shown
from mcphost.protocol.prompts import check_arguments
from mcphost.serving import limits, lookups, policy
from mcphost.serving.context import Incoming
from mcphost.serving.execution import calls
from mcphost.serving.lookups import CallTarget, offering
from mcphost.serving.methods import pagination
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import finish, server_info


async def list_prompts(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """One page of the prompts visible to the caller, ordered by name."""
    return await pagination.page(incoming, "prompts", attrgetter("prompts"), attrgetter("name"))


async def get_prompt(incoming: Incoming, stream: EventStream) -> Mapping[str, Any]:
    """Run a prompt with the caller's arguments and return its messages."""
    policy.require_scope(incoming.principal, policy.CALL)
    params = incoming.exchange.params
    name, arguments = params["name"], params.get("arguments") or {}
    offered, scopes = await offering(incoming.tenant.id), incoming.principal.scopes
    prompt = lookups.prompt(offered, name, scopes)
    if prompt is None:
        absent = lookups.absent(offered, CallTarget("prompts/get", name), scopes)
        raise absent or invalid_params(f"Unknown prompt: {shown(name)}")
    problem = check_arguments(prompt.arguments, arguments)
    if problem is not None:
        raise invalid_params(problem)
    limits.check_size(incoming, prompt.input_validator, arguments)
    reply = await calls.run(incoming, prompt, prompt.name, arguments, stream)
    described = {key: prompt.listing[key] for key in ("description",) if key in prompt.listing}
    return finish(
        reply,
        server_info(incoming.tenant.title, incoming.tenant.icon),
        lambda result: {**described, **result},
    )
