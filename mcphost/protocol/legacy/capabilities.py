"""Capabilities of clients and of the server in a session (spec: basic/lifecycle)."""

from collections.abc import Mapping
from typing import Any

from mcphost.protocol.revisions import Revision

_SERVER: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
    "completions": {},
}
_TASKS: Mapping[str, Any] = {
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
}


def client_capabilities(revision: Revision, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's capabilities in the shape of the stateless revision.

    Capabilities that the client's revision does not have are left out, even if the client declares
    them.
    """
    can: dict[str, Any] = {}
    for name in ("roots", "sampling", "elicitation", "experimental"):
        if isinstance(capabilities.get(name), dict):
            can[name] = capabilities[name]
    if not revision.sampling_tools and "sampling" in can:
        can["sampling"] = {}
    if not revision.elicitation:
        can.pop("elicitation", None)
    elif not revision.urls and "elicitation" in can:
        can["elicitation"] = {}
    return can


def initialize_result(
    revision: Revision, server: Mapping[str, Any], instructions: str
) -> dict[str, Any]:
    """Build `InitializeResult`. `server` is our `Implementation`; fields that the revision lacks
    are left out."""
    fields = ["name", "version"]
    if revision.structured:
        fields.append("title")
    if revision.icons:
        fields += ["icons", "description", "websiteUrl"]
    result: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": {**_SERVER, **_TASKS} if revision.tasks else dict(_SERVER),
        "serverInfo": {name: server[name] for name in fields if name in server},
    }
    if instructions:
        result["instructions"] = instructions
    return result
