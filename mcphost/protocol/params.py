"""The params and the `_meta` of a request: their shape, said field by field.

What a field is, is checked by hand: it takes a microsecond where the wire models of `mcp_types`
take five, and refuses what they coerce (`true` for 1, null for absent). What has depth of its own
(what a model said, completion references, subscription filters) is left to those models.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY
from mcp_types.methods import CLIENT_REQUESTS
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from mcphost.protocol.eras import REVISION
from mcphost.protocol.errors import ProtocolError, invalid_params
from mcphost.protocol.exchange import Meta
from mcphost.protocol.messages import LOG_LEVELS

NAME_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
)
"""Where `Mcp-Name` comes from (streamable-http, "Standard Request Headers"); required in params."""

MAX_TEXT: Final = 1024
"""Of a client's name and version, which are in each record of its calls and stay there, and of the
token that each of thousands of notifications may carry."""

_RETRY: Final[Mapping[str, type]] = {"requestState": str, "inputResponses": dict}
_PAGE: Final[Mapping[str, type]] = {"cursor": str}

_FIELDS: Final[Mapping[str, Mapping[str, type]]] = {
    "tools/call": {"arguments": dict, **_RETRY},
    "prompts/get": {"arguments": dict, **_RETRY},
    "resources/read": _RETRY,
    "tools/list": _PAGE,
    "prompts/list": _PAGE,
    "resources/list": _PAGE,
    "resources/templates/list": _PAGE,
}
"""The fields that may be missing, by method."""

_DEEP: Final = frozenset({"prompts/get", "completion/complete", "subscriptions/listen"})
"""The methods whose params the wire models look at too."""

_ACTIONS: Final = ("accept", "decline", "cancel")
_FILLED_IN: Final = frozenset({str, int, float, bool, type(None)})
"""What a field of a form may be answered with, besides a list of texts."""

_LONGEST_KEY: Final = 64

_CAPABILITIES: Final[Mapping[str, frozenset[str] | None]] = {
    "roots": frozenset(),
    "sampling": frozenset({"context", "tools"}),
    "elicitation": frozenset({"form", "url"}),
    "extensions": None,
    "experimental": None,
}
"""Capabilities that are objects, and which of their members are objects too (None: all)."""

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)

_KINDS: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}

_ABSENT: Final = object()

# The type of all answers, which has no public name of its own.
_CALL: Final[Any] = CLIENT_REQUESTS["tools/call", REVISION].model_fields["params"].annotation
_INPUT_RESPONSES: Final[Any] = _CALL.model_fields["input_responses"].annotation
_RESPONSES: Final[TypeAdapter[Any]] = TypeAdapter(_INPUT_RESPONSES)

_META: Final = "params._meta"
_CLIENT_INFO: Final = f"{_META}[{CLIENT_INFO_META_KEY!r}]"
_CLIENT_CAPABILITIES: Final = f"{_META}[{CLIENT_CAPABILITIES_META_KEY!r}]"


def check_type(where: str, value: object, expected: type) -> None:
    """Refuse a value that is not of the one JSON type it must have. Raises INVALID_PARAMS."""
    if type(value) is not expected:
        raise invalid_params(f"{where} must be {_KINDS[expected]}, {_found(value)}")


def required(holder: Mapping[str, Any], name: str, expected: type, where: str) -> Any:
    """A member that must be there, of a JSON type. Raises INVALID_PARAMS."""
    value = holder.get(name, _ABSENT)
    if type(value) is not expected:
        check_type(_member(where, name), value, expected)
    return value


def check_params(method: str, params: Mapping[str, Any], revision: str = REVISION) -> None:
    """Refuse params that the method's request type does not allow. Raises INVALID_PARAMS.

    A method that the revision does not define passes: whether it is served is decided later.
    """
    fields = _FIELDS.get(method)
    if fields is not None:
        for name, expected in fields.items():
            if name in params:
                required(params, name, expected, "params")
    if fields is not None and "inputResponses" in params and "inputResponses" in fields:
        _check_responses(params["inputResponses"])
    if method in _DEEP and (method, revision) in CLIENT_REQUESTS:
        _check_deeply(method, params, revision)


def read_meta(meta: Mapping[str, Any]) -> Meta:
    """What a `_meta` says, checked (spec: basic/index, "_meta"). Raises INVALID_PARAMS.

    A trace parent that is not one is ignored, as W3C Trace Context asks.
    """
    token = level = None
    info: Mapping[str, Any] = {}
    if "progressToken" in meta:
        token = _progress_token(meta["progressToken"])
    if LOG_LEVEL_META_KEY in meta:
        level = _log_level(meta[LOG_LEVEL_META_KEY])
    if CLIENT_INFO_META_KEY in meta:
        info = required(meta, CLIENT_INFO_META_KEY, dict, _META)
        # Only what every `Implementation` has: the rest is decoration that nothing here uses.
        name = required(info, "name", str, _CLIENT_INFO)
        version = required(info, "version", str, _CLIENT_INFO)
        if len(name) > MAX_TEXT or len(version) > MAX_TEXT:
            raise _too_long(_CLIENT_INFO)
    capabilities = meta.get(CLIENT_CAPABILITIES_META_KEY, {})
    if capabilities:
        check_type(_CLIENT_CAPABILITIES, capabilities, dict)
        _check_capabilities(capabilities)
    trace = _traceparent(meta["traceparent"]) if "traceparent" in meta else None
    return Meta(token, level, info, capabilities, trace)


def _progress_token(token: Any) -> str | int:
    if type(token) is not str and type(token) is not int:
        raise invalid_params(
            f"{_META}.progressToken must be a string or an integer of at most 64 bits, "
            f"{_found(token)}"
        )
    if type(token) is str and len(token) > MAX_TEXT:
        raise _too_long(f"{_META}.progressToken")
    return token


def _too_long(where: str) -> ProtocolError:
    return invalid_params(f"{where} has more than {MAX_TEXT} characters")


def _log_level(level: Any) -> str:
    if type(level) is not str or level not in LOG_LEVELS:
        raise invalid_params(
            f"{_META}[{LOG_LEVEL_META_KEY!r}] must be one of {', '.join(LOG_LEVELS)}"
        )
    return level


def _check_capabilities(capabilities: Mapping[str, Any]) -> None:
    for name, capability in capabilities.items():
        if name not in _CAPABILITIES:
            continue
        if type(capability) is not dict:
            check_type(_member(_CLIENT_CAPABILITIES, name), capability, dict)
        if capability:
            _check_members(name, capability)


def _check_members(name: str, capability: Mapping[str, Any]) -> None:
    members = _CAPABILITIES[name]
    for member in capability:
        if members is None or member in members:
            required(capability, member, dict, _member(_CLIENT_CAPABILITIES, name))


def _traceparent(value: object) -> str | None:
    return value if type(value) is str and _TRACEPARENT.fullmatch(value) else None


def _check_responses(responses: Mapping[str, Any]) -> None:
    """Refuse answers that answer nothing (spec: basic/patterns/mrtr, "Error Handling").

    Whether one answers its own question is found out where that is known. Forms are looked at by
    hand: they are nearly all answers that there are.
    """
    for key, response in responses.items():
        if not _is_filled_in(response) and not _is_response(response):
            where = _member("params.inputResponses", key[:_LONGEST_KEY])
            raise invalid_params(
                f"{where} must be the result of an elicitation, sampling or roots request"
            )


def _is_filled_in(response: Any) -> bool:
    if type(response) is not dict or response.get("action") not in _ACTIONS:
        return False
    content = response.get("content", {})
    return type(content) is dict and all(type(value) in _FILLED_IN for value in content.values())


def _is_response(response: Any) -> bool:
    try:
        _RESPONSES.validate_json(orjson.dumps({"": response}), strict=True, by_name=False)
    except ValidationError:
        return False
    return True


def _check_deeply(method: str, params: Mapping[str, Any], revision: str) -> None:
    request = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
    try:
        # From bytes, because strict models take nothing but their own instances from Python.
        CLIENT_REQUESTS[method, revision].model_validate_json(
            orjson.dumps(request), strict=True, by_name=False
        )
    except ValidationError as error:
        raise invalid_params(_told(error.errors()[0], request)) from None


def _told(error: ErrorDetails, request: Mapping[str, Any]) -> str:
    return f"{_where(error, request)}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _where(error: ErrorDetails, node: Any) -> str:
    """The path of an error in the message, without the model names that unions put into it."""
    path = []
    for part in error["loc"]:
        if (isinstance(node, dict) and part in node) or isinstance(part, int):
            node = node[part]
        elif error["type"] != "missing" or part != error["loc"][-1]:
            continue
        path.append(str(part))
    return ".".join(path)


def _found(value: object) -> str:
    return "but is missing" if value is _ABSENT else f"not {_KINDS[type(value)]}"


def _member(where: str, name: str) -> str:
    """`params.cursor`, and `params._meta['io.modelcontextprotocol/logLevel']`."""
    return f"{where}.{name}" if name.isidentifier() else f"{where}[{name!r}]"
