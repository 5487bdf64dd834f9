"""Example requests for each primitive type, with values from its schema: not always valid."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from mcphost.console.tenants import clients
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.schemas import param_headers
from mcphost.protocol.uri_templates import UriTemplate

MAX_DEPTH = 4
_PLAIN: Mapping[str, Any] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True}
_FORMATS: Mapping[str, str] = {
    "date": "2026-07-28",
    "date-time": "2026-07-28T09:30:00Z",
    "email": "name@example.com",
    "uri": "https://example.com/",
}
_BASE64 = "ZXhhbXBsZQ=="


def arguments(schema: Mapping[str, Any], *, of_all: bool = False) -> dict[str, Any]:
    """Return each required argument of a tool, or each of all, with a value of its type."""
    return _SchemaExamples(schema, of_all).members(schema, 0)


class _SchemaExamples(NamedTuple):
    """Examples for the parts of a schema: of all properties of an object, or of those it requires."""

    root: Mapping[str, Any]
    of_all: bool

    def members(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        names = properties if self.of_all else schema.get("required", ())
        return {
            name: self.value(properties[name], depth + 1) for name in names if name in properties
        }

    def value(self, schema: Any, depth: int) -> Any:
        if isinstance(schema, Mapping) and "$ref" in schema:  # into `$defs`
            path, _, name = str(schema["$ref"]).rpartition("/")
            schema = self.root.get(path.removeprefix("#/"), {}).get(name)
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return None
        if "const" in schema:
            return schema["const"]
        if schema.get("examples"):
            return schema["examples"][0]
        if "default" in schema:
            return schema["default"]
        if schema.get("enum"):
            return schema["enum"][0]
        for alternatives in ("anyOf", "oneOf", "allOf"):
            if schema.get(alternatives):
                return self.value(schema[alternatives][0], depth)
        return self._of_type(schema, depth)

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = kind[0] if kind else None
        if kind == "object" or "properties" in schema:
            return self.members(schema, depth)
        if kind == "array":
            return [self.value(schema["items"], depth + 1)] if "items" in schema else []
        if kind in ("integer", "number") and "minimum" in schema:
            return schema["minimum"]
        if schema.get("contentEncoding") == "base64":
            return _BASE64
        return _FORMATS.get(str(schema.get("format")), _PLAIN.get(str(kind)))


Choices = Mapping[str, Sequence[str]]
"""Suggested values for arguments or variables, by name."""
Values = Mapping[str, str]

_EXPRESSION = re.compile(r"\{([+?]?)([^{}]*)\}")


def choices(config: Mapping[str, Any]) -> Choices:
    """Return the suggestions in the configuration of a primitive written in the console."""
    arguments = {
        argument["name"]: argument.get("choices", ()) for argument in config.get("arguments", ())
    }
    return {**arguments, **config.get("choices", {})}


def values(
    primitive_type: PrimitiveType, listing: Mapping[str, Any], suggested: Choices, *, of_all: bool
) -> dict[str, str]:
    """Return a value for each argument of a prompt, or each variable of a template.

    Without `of_all`, optional arguments are left out: what a function does with them is unknown.
    """
    names: Sequence[str] = ()
    if primitive_type is PrimitiveType.PROMPT:
        arguments = listing.get("arguments", ())
        names = [argument["name"] for argument in arguments if of_all or argument.get("required")]
    elif primitive_type is PrimitiveType.TEMPLATE and listing:
        names = UriTemplate(listing["uriTemplate"]).variables
    return {name: (suggested.get(name) or (name,))[0] for name in names}


def curl(
    primitive_type: PrimitiveType, url: str, listing: Mapping[str, Any], filled: Values
) -> str:
    """Return a request for the listed primitive, ready to paste; empty without a listing."""
    if not listing:
        return ""
    name = str(listing.get("name", ""))
    if primitive_type is PrimitiveType.TOOL:
        schema = listing.get("inputSchema", {})
        filled, mirrored = arguments(schema), param_headers(schema)
        return clients.curl(url, "tools/call", name, {"name": name, "arguments": filled}, mirrored)
    if primitive_type is PrimitiveType.PROMPT:
        return clients.curl(url, "prompts/get", name, {"name": name, "arguments": filled})
    uri = str(listing.get("uri") or expanded(listing["uriTemplate"], filled))
    return clients.curl(url, "resources/read", uri, {"uri": uri})


def expanded(template: str, filled: Values) -> str:
    """Expand a URI template with values."""
    return _EXPRESSION.sub(lambda match: _written(match[1], match[2], filled), template)


def _written(operator: str, names: str, filled: Values) -> str:
    if operator == "?":
        pairs = (f"{name}={quote(filled[name], safe='')}" for name in names.split(","))
        return "?" + "&".join(pairs)
    return quote(filled[names], safe="/" if operator == "+" else "")
