"""Questions as the session-based revisions can carry them (spec: client/elicitation, client/sampling)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mcphost.protocol.revisions import Revision

Json = dict[str, Any]


class NotCarried(Exception):  # noqa: N818 - a refusal that says what happened
    """A question that a revision has no words for. `capability` is what it lacks, dotted."""

    def __init__(self, capability: str, message: str) -> None:
        super().__init__(message)
        self.capability = capability


def params_of(revision: Revision, method: str, params: Mapping[str, Any], id: str) -> Json:
    """The params of a question to a client of that revision. `id` names it where it must be named.

    Raises NotCarried.
    """
    return _WRITERS[method](revision, params, id)


def _elicitation(revision: Revision, params: Mapping[str, Any], id: str) -> Json:
    if not revision.elicitation:
        raise NotCarried("elicitation", f"revision {revision.name} has no questions to users")
    if params.get("mode") == "url":
        if not revision.urls:
            raise NotCarried("elicitation.url", f"revision {revision.name} asks by forms only")
        return {**params, "elicitationId": id}
    if revision.rich_forms:
        return dict(params)
    schema = params["requestedSchema"]
    fields = {name: _plain_field(name, one) for name, one in schema["properties"].items()}
    return {"message": params["message"], "requestedSchema": {**schema, "properties": fields}}


def _plain_field(name: str, field: Mapping[str, Any]) -> Json:
    """A field of a form as revisions before 2025-11-25 have them.

    Choices have titles by `enumNames`; nothing but a yes or no has a default.
    """
    if field.get("type") == "array":
        raise NotCarried("elicitation.form", f"{name} lets choose several, which came later")
    plain = {key: value for key, value in field.items() if key != "oneOf"}
    if "oneOf" in field:
        plain["enum"] = [one["const"] for one in field["oneOf"]]
        plain["enumNames"] = [one["title"] for one in field["oneOf"]]
    if plain.get("type") != "boolean":
        plain.pop("default", None)
    return plain


def _sampling(revision: Revision, params: Mapping[str, Any], id: str) -> Json:
    if revision.sampling_tools:
        return dict(params)
    if "tools" in params or "toolChoice" in params:
        raise NotCarried("sampling.tools", f"revision {revision.name} samples without tools")
    return {**params, "messages": [_plain_message(one) for one in params["messages"]]}


def _plain_message(message: Mapping[str, Any]) -> Json:
    content = message["content"]
    blocks = content if isinstance(content, list) else [content]
    if len(blocks) != 1 or blocks[0]["type"] not in ("text", "image", "audio"):
        raise NotCarried("sampling.tools", "a message holds one text, image or sound here")
    return {"role": message["role"], "content": blocks[0]}


def _roots(revision: Revision, params: Mapping[str, Any], id: str) -> Json:
    return dict(params)


_WRITERS: Final[Mapping[str, Callable[[Revision, Mapping[str, Any], str], Json]]] = (
    MappingProxyType(
        {
            "elicitation/create": _elicitation,
            "sampling/createMessage": _sampling,
            "roots/list": _roots,
        }
    )
)
