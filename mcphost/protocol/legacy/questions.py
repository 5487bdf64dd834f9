"""Converts input requests to the session-based revisions (spec: client/elicitation,
client/sampling)."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from mcphost.protocol.revisions import Revision

Json = dict[str, Any]


class NotCarriedError(Exception):
    """A revision cannot express an input request. `capability` is what it lacks, dotted."""

    def __init__(self, capability: str, message: str) -> None:
        super().__init__(message)
        self.capability = capability


def question_params_for(revision: Revision, method: str, params: Mapping[str, Any]) -> Json:
    """Return the params of an input request for a client of the revision. Raises NotCarriedError."""
    return _WRITERS[method](revision, params)


def needed(method: str, params: Mapping[str, Any]) -> str:
    """The client capability that an input request needs, dotted."""
    if method == "elicitation/create":
        return "elicitation.url" if params.get("mode") == "url" else "elicitation.form"
    return "sampling" if method == "sampling/createMessage" else "roots"


def elicitation_id(url: str) -> str:
    """Return the `elicitationId` of a URL-mode question (2025-11-25: client/elicitation, "URL
    Mode").

    It is derived from the address, so that every process can later notify that the elicitation is
    complete.
    """
    return sha256(url.encode()).hexdigest()[:32]


def _elicitation(revision: Revision, params: Mapping[str, Any]) -> Json:
    if not revision.elicitation:
        raise NotCarriedError(
            "elicitation", f"revision {revision.name} does not support elicitation"
        )
    if params.get("mode") == "url":
        if not revision.urls:
            raise NotCarriedError(
                "elicitation.url", f"revision {revision.name} supports form mode only"
            )
        return {**params, "elicitationId": elicitation_id(params["url"])}
    if revision.rich_forms:
        return dict(params)
    schema = params["requestedSchema"]
    fields = {name: _plain_field(name, field) for name, field in schema["properties"].items()}
    return {"message": params["message"], "requestedSchema": {**schema, "properties": fields}}


def _plain_field(name: str, field: Mapping[str, Any]) -> Json:
    """Convert a field of a form to revisions before 2025-11-25.

    Choices get their titles by `enumNames`; only booleans keep a default. Raises NotCarriedError for a
    multiple choice.
    """
    if field.get("type") == "array":
        raise NotCarriedError(
            "elicitation.form", f"{name} is a multiple choice, which this revision does not support"
        )
    plain = {key: value for key, value in field.items() if key != "oneOf"}
    if "oneOf" in field:
        plain["enum"] = [choice["const"] for choice in field["oneOf"]]
        plain["enumNames"] = [choice["title"] for choice in field["oneOf"]]
    if plain.get("type") != "boolean":
        plain.pop("default", None)
    return plain


def _sampling(revision: Revision, params: Mapping[str, Any]) -> Json:
    if revision.sampling_tools:
        return dict(params)
    if "tools" in params or "toolChoice" in params:
        raise NotCarriedError(
            "sampling.tools", f"revision {revision.name} does not support tools in sampling"
        )
    types = ("text", "image", "audio") if revision.audio else ("text", "image")
    messages: list[Json] = []
    for message in params["messages"]:
        content = message["content"]
        blocks = content if isinstance(content, list) else [content]
        if len(blocks) != 1 or blocks[0]["type"] not in types:
            raise NotCarriedError(
                "sampling.tools",
                f"in this revision a message must have exactly one block: {', '.join(types)}",
            )
        messages.append({"role": message["role"], "content": blocks[0]})
    return {**params, "messages": messages}


def _roots(revision: Revision, params: Mapping[str, Any]) -> Json:
    return dict(params)


_WRITERS: Final[Mapping[str, Callable[[Revision, Mapping[str, Any]], Json]]] = MappingProxyType(
    {
        "elicitation/create": _elicitation,
        "sampling/createMessage": _sampling,
        "roots/list": _roots,
    }
)
