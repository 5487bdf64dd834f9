"""Checks of the shape of a request's params and `_meta`, with those of task requests.

Simple fields are checked by hand: this takes a microsecond where the wire models of `mcp_types`
take five, and it refuses what they coerce (`true` for 1, null for absent). Nested fields (sampling
results, completion references, subscription filters) are validated against the schemas of those
models (`shapes`), which stop at the first misfit. The models themselves only explain what is wrong
with small params (`effort`). Until they are loaded, these checks raise `shapes.NotLoadedError`.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY
from pydantic import ValidationError

from mcphost.protocol import tasks
from mcphost.protocol.effort import is_explained
from mcphost.protocol.empty_members import drop_empty_content
from mcphost.protocol.errors import ProtocolError, invalid_params
from mcphost.protocol.exchange import Meta
from mcphost.protocol.messages import LOG_LEVELS
from mcphost.protocol.revisions import REVISION
from mcphost.protocol.shapes import DEEP, wire_shapes

NAME_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tools/call": "name",
        "prompts/get": "name",
        "resources/read": "uri",
        **dict.fromkeys(tasks.METHODS, "taskId"),
    }
)
"""The param that `Mcp-Name` must match (streamable-http, "Standard Request Headers"; the tasks
extension, "Routing Headers"). It is required, except with methods of the tasks extension: FastMCP 4.1
does not send it there, and only routing needs it. Once the FastMCP of `docs/clients.md` sends it, it
becomes required."""

MAX_TEXT: Final = 1024
"""The longest client name, client version and progress token, in characters. Each record of a call
stores the name and the version, and each of thousands of notifications may carry the token."""

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
"""The optional fields, by method."""

_ACTIONS: Final = ("accept", "decline", "cancel")
_FILLED_IN: Final = frozenset({str, int, float, bool, type(None)})
"""The JSON types that the value of a form field may have, besides an array of strings."""

_MAX_KEY: Final = 80
"""How much of a client's name is shown: an author's key of 64 characters, and its number in a
task."""

_CAPABILITIES: Final[Mapping[str, frozenset[str] | None]] = {
    "roots": frozenset(),
    "sampling": frozenset({"context", "tools"}),
    "elicitation": frozenset({"form", "url"}),
    "extensions": None,
    "experimental": None,
}
"""The capabilities that must be objects, and which of their members must be objects too (None:
all)."""

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

_BRIEF: Final[Any] = {"include_url": False, "include_context": False, "include_input": False}

_TASK_IDS: Final = "params.notifications.taskIds"
_META: Final = "params._meta"
_CLIENT_INFO: Final = f"{_META}[{CLIENT_INFO_META_KEY!r}]"
_CLIENT_CAPABILITIES: Final = f"{_META}[{CLIENT_CAPABILITIES_META_KEY!r}]"


def check_type(where: str, value: object, expected: type) -> None:
    """Refuse a value that does not have the expected JSON type. Raises INVALID_PARAMS."""
    if type(value) is not expected:
        raise invalid_params(f"{where} must be {_KINDS[expected]}, {_describe_actual(value)}")


def required(holder: Mapping[str, Any], name: str, expected: type, where: str) -> Any:
    """Return a required member, which must have the expected JSON type. Raises INVALID_PARAMS."""
    value = holder.get(name, _ABSENT)
    if type(value) is not expected:
        check_type(_member(where, name), value, expected)
    return value


def check_params(method: str, params: Mapping[str, Any], revision: str = REVISION) -> None:
    """Refuse params that the method's request type does not allow. Raises INVALID_PARAMS.

    A method that the revision does not define passes: dispatch decides later whether it is served.
    Raises NotLoadedError for a method of `shapes.DEEP` until the wire models are loaded.
    """
    fields = _FIELDS.get(method)
    if fields is not None:
        for name, expected in fields.items():
            if name in params and type(params[name]) is not expected:
                required(params, name, expected, "params")
    if fields is not None and "inputResponses" in params and "inputResponses" in fields:
        check_responses(params["inputResponses"])
    wire = wire_shapes.request(method, revision) if method in DEEP else None
    if wire is not None:
        request = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        if not wire.shape.fits(request):
            raise invalid_params(_explained(wire.model, request))
    check = _OF_TASKS.get(method)
    if check is not None and revision == REVISION:
        check(params)


def read_meta(meta: Mapping[str, Any]) -> Meta:
    """Check and read a `_meta` object (spec: basic/index, "_meta"). Raises INVALID_PARAMS.

    An invalid trace parent is ignored, as W3C Trace Context asks.
    """
    token = level = None
    info: Mapping[str, Any] = {}
    if "progressToken" in meta:
        token = _progress_token(meta["progressToken"])
    if LOG_LEVEL_META_KEY in meta:
        level = meta[LOG_LEVEL_META_KEY]
        if type(level) is not str or level not in LOG_LEVELS:
            raise invalid_params(
                f"{_META}[{LOG_LEVEL_META_KEY!r}] must be one of {', '.join(LOG_LEVELS)}"
            )
    if CLIENT_INFO_META_KEY in meta:
        info = meta[CLIENT_INFO_META_KEY]
        if type(info) is not dict:
            check_type(_CLIENT_INFO, info, dict)
        # Only the fields that every `Implementation` has: nothing here uses the others.
        name, version = info.get("name"), info.get("version")
        if type(name) is not str or type(version) is not str:
            required(info, "name", str, _CLIENT_INFO)
            required(info, "version", str, _CLIENT_INFO)
        elif len(name) > MAX_TEXT or len(version) > MAX_TEXT:
            raise _too_long(_CLIENT_INFO)
    capabilities = meta.get(CLIENT_CAPABILITIES_META_KEY, {})
    if capabilities:
        _check_capabilities(capabilities)
    trace = meta.get("traceparent")
    if type(trace) is not str or not _TRACEPARENT.fullmatch(trace):
        trace = None
    return Meta(token, level, info, capabilities, trace)


def _progress_token(token: Any) -> str | int:
    if type(token) is not str and type(token) is not int:
        raise invalid_params(
            f"{_META}.progressToken must be a string or an integer of at most 64 bits, "
            f"{_describe_actual(token)}"
        )
    if type(token) is str and len(token) > MAX_TEXT:
        raise _too_long(f"{_META}.progressToken")
    return token


def _too_long(where: str, max_characters: int = MAX_TEXT) -> ProtocolError:
    return invalid_params(f"{where} has more than {max_characters} characters")


def _check_capabilities(capabilities: Mapping[str, Any]) -> None:
    check_type(_CLIENT_CAPABILITIES, capabilities, dict)
    for name, capability in capabilities.items():
        if name not in _CAPABILITIES:
            continue
        if type(capability) is not dict:
            check_type(_member(_CLIENT_CAPABILITIES, name), capability, dict)
        objects = _CAPABILITIES[name]
        for member, value in capability.items():
            if type(value) is not dict and (objects is None or member in objects):
                check_type(_member(_member(_CLIENT_CAPABILITIES, name), member), value, dict)


def check_responses(responses: Mapping[str, Any]) -> None:
    """Refuse values that cannot be input responses (spec: basic/patterns/mrtr, "Error Handling").
    Raises INVALID_PARAMS.

    Whether a response fits its own input request is checked later, where the request is available.
    Form responses are checked by hand, because nearly all input responses are of forms. Raises
    NotLoadedError for other ones until the wire models are loaded.
    """
    for key, response in responses.items():
        if type(response) is dict and response.get("action") in _ACTIONS:
            content = response.get("content", {})
            if content == []:
                drop_empty_content(response)
            elif type(content) is dict and _FILLED_IN.issuperset(map(type, content.values())):
                continue
        if not wire_shapes.responses.fits({"": response}):
            where = _member("params.inputResponses", key)
            raise invalid_params(
                f"{where} must be the result of an elicitation, sampling or roots request: "
                f"{_misfit(response)}"
            )


def _misfit(response: Any) -> str:
    """Say which member keeps a value from being an input response, and why. Quotes no value."""
    if type(response) is not dict:
        return f"it must be an object, {_describe_actual(response)}"
    if "action" in response:
        return _form_misfit(response)
    if "roots" in response:
        roots = response["roots"]
        is_list = type(roots) is list
        return (
            "roots is not valid"
            if is_list
            else f"roots must be an array, {_describe_actual(roots)}"
        )
    if "role" not in response:
        return "it has none of action, role and roots"
    if type(response.get("model")) is not str:
        return f"model must be a string, {_describe_actual(response.get('model', _ABSENT))}"
    return "content is not valid"


def _form_misfit(response: Mapping[str, Any]) -> str:
    if response["action"] not in _ACTIONS:
        return "action must be accept, decline or cancel"
    content = response.get("content")
    if type(content) is not dict:
        return f"content must be an object, {_describe_actual(content)}"
    if not is_explained(response):
        return "content is not valid"
    misfits = (_value_misfit(_member("content", name), value) for name, value in content.items())
    return next(filter(None, misfits), "content is not valid")


def _value_misfit(where: str, value: Any) -> str | None:
    if type(value) in _FILLED_IN:
        return None
    if type(value) is not list:
        expected = "a string, a number, a boolean or an array of strings"
        return f"{where} must be {expected}, {_describe_actual(value)}"
    others = (index for index, element in enumerate(value) if type(element) is not str)
    index = next(others, None)
    if index is None:
        return None
    return f"{where}[{index}] must be a string, {_describe_actual(value[index])}"


def _check_task(params: Mapping[str, Any]) -> None:
    if len(required(params, "taskId", str, "params")) > tasks.MAX_ID:
        raise _too_long("params.taskId", tasks.MAX_ID)


def _check_update(params: Mapping[str, Any]) -> None:
    """Only responses to outstanding input requests are checked, later: all others are ignored."""
    _check_task(params)
    required(params, "inputResponses", dict, "params")


def _check_followed(params: Mapping[str, Any]) -> None:
    """Refuse task ids that no task has, and a client that cannot be notified of tasks.

    The wire models lack this field. The other params have been checked.
    """
    ids = params["notifications"].get("taskIds", [])
    if type(ids) is not list:
        check_type(_TASK_IDS, ids, list)
    for index, task_id in enumerate(ids):
        if type(task_id) is not str:
            check_type(f"{_TASK_IDS}[{index}]", task_id, str)
        if len(task_id) > tasks.MAX_ID:
            raise _too_long(f"{_TASK_IDS}[{index}]", tasks.MAX_ID)
    if len(set(ids)) > tasks.MAX_FOLLOWED:
        raise invalid_params(f"{_TASK_IDS} has more than {tasks.MAX_FOLLOWED} ids")
    if ids and not tasks.declared(params["_meta"][CLIENT_CAPABILITIES_META_KEY]):
        raise tasks.extension_missing()


_OF_TASKS: Final[Mapping[str, Callable[[Mapping[str, Any]], None]]] = {
    "tasks/get": _check_task,
    "tasks/cancel": _check_task,
    "tasks/update": _check_update,
    "subscriptions/listen": _check_followed,
}
"""The checks of params that only the tasks extension of the stateless revision has."""


def _explained(model: Any, request: Mapping[str, Any]) -> str:
    """Describe the first misfit; for large params, say only that they do not fit."""
    if is_explained(request):
        try:
            # From bytes, because strict models accept only their own instances from Python.
            model.model_validate_json(orjson.dumps(request), strict=True, by_name=False)
        except ValidationError as error:
            first = error.errors(**_BRIEF)[0]
            # The path in the message, without the model names that unions add to it.
            path: list[str] = []
            node: Any = request
            for part in first["loc"]:
                if (isinstance(node, dict) and part in node) or isinstance(part, int):
                    node = node[part]
                elif first["type"] != "missing" or part != first["loc"][-1]:
                    continue
                path.append(str(part))
            return f"{'.'.join(path)}: {first['msg'][0].lower()}{first['msg'][1:]}"
    return f"params are not valid for {request['method']}"


def _describe_actual(value: object) -> str:
    return "but is missing" if value is _ABSENT else f"not {_KINDS[type(value)]}"


def _member(where: str, name: str) -> str:
    """Name a member: `params.cursor` or `params._meta['io.modelcontextprotocol/logLevel']`.

    A client's name is cut to 80 characters.
    """
    name = name[:_MAX_KEY]
    return f"{where}.{name}" if name.isidentifier() else f"{where}[{name!r}]"
