"""`curl` commands: one that makes a recorded call again, and the headers of its revision.

The credential is `$MCP_TOKEN`. Arguments that the reader may not see are `$ARGUMENTS`.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final

from mcphost.audit.entries import EntryView
from mcphost.audit.redaction import REDACTED
from mcphost.audit.timeline import Timeline
from mcphost.protocol.params import NAME_FIELDS
from mcphost.protocol.revisions import REVISION, REVISIONS, Revision
from mcphost.protocol.schemas import ParamHeader
from mcphost.runtime.call import Delivery, PrincipalKind

Json = dict[str, Any]

_PLAIN: Final = re.compile(r"(?!=\?)[!-~](?:[ -~]*[!-~])?")
"""A header value that needs no encoding."""
_CLIENT: Final = {"name": "curl", "version": "1"}
_SESSION: Final = '"Mcp-Session-Id: $MCP_SESSION"'
_CAPABILITIES: Final[Mapping[str, tuple[str, Any]]] = {
    "elicitation/create": ("elicitation", {"form": {}, "url": {}}),
    "sampling/createMessage": ("sampling", {}),
    "roots/list": ("roots", {}),
}
ALL_CAPABILITIES: Final[Json] = dict(_CAPABILITIES.values())
"""What a client declares so that any tool may ask it."""


@dataclass(frozen=True, slots=True)
class CurlCommand:
    """The command, and what differs between running it and the call."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Repetition:
    """What the command is made of. `arguments` is None where the reader may not see them.

    `mirrored` are the arguments that the tool wants in headers too.
    """

    url: str
    call: Timeline
    arguments: Mapping[str, Any] | None = None
    mirrored: Sequence[ParamHeader] = ()

    @property
    def first(self) -> EntryView:
        return self.call.entries[0]


def command(url: str, headers: Iterable[str], body: str, *options: str) -> str:
    """Return a `curl` command; headers and body are words of a shell."""
    lines = [" ".join(("curl", *options, quote(url))), *(f"-H {header}" for header in headers)]
    return " \\\n  ".join([*lines, f"-d {body}"])


def repeat(repetition: Repetition) -> CurlCommand:
    """Return the command for a call, in the revision that its client spoke."""
    revision = REVISIONS.get(repetition.first.revision)
    if revision is None:
        text = command(
            repetition.url,
            _headers(repetition),
            _body(repetition, request_meta(_capabilities(repetition.call))),
        )
    else:
        text = _in_session(repetition, revision)
    return CurlCommand(text, tuple(_notes(repetition, revision)))


def request_headers(
    method: str,
    target: str,
    arguments: Mapping[str, Any] | None,
    mirrored: Sequence[ParamHeader],
) -> list[str]:
    """The headers that the stateless revision adds to a request, as shell words. `target` is empty if it has none."""
    headers = [
        f"MCP-Protocol-Version: {REVISION}",
        f"Mcp-Method: {_value(method)}",
        *([f"Mcp-Name: {_value(target)}"] if target else []),
        *(f"Mcp-Param-{name}: {_value(value)}" for name, value in _mirrored(arguments, mirrored)),
    ]
    return [*map(quote, headers)]


def request_meta(capabilities: Json) -> Json:
    """The member `_meta` of the params of such a request."""
    return {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
    }


def request_body(method: str, params: Json, id: int = 1) -> str:
    """A request as JSON. ASCII only: what is pasted into a terminal must have no character that it cannot show."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def session_commands(
    url: str, common: Sequence[str], revision: Revision, capabilities: Json, body: str
) -> str:
    """The commands of a session: initialize, the notification that it is done, and a request. `common` are the headers of
    all of them."""
    versioned = [quote(f"MCP-Protocol-Version: {revision.name}")] if revision.header else []
    start = {
        "protocolVersion": revision.name,
        "capabilities": capabilities,
        "clientInfo": _CLIENT,
    }
    begun = command(url, common, quote(request_body("initialize", start, 0)), "-si")
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    headers = [*common, *versioned, _SESSION]
    return "\n".join(
        (
            f"MCP_SESSION=$({begun} | tr -d '\\r' | awk 'tolower($1) == \"mcp-session-id:\" {{print $2}}')",
            command(url, headers, quote(json.dumps(ready))),
            command(url, headers, body),
        )
    )


def _headers(repetition: Repetition) -> list[str]:
    """The headers of a request of the stateless revision, as shell words."""
    first = repetition.first
    own = request_headers(first.method, first.target, repetition.arguments, repetition.mirrored)
    return [*_common(first), *own]


def _common(first: EntryView) -> list[str]:
    has_credential = first.actor_kind != PrincipalKind.ANONYMOUS
    return [
        *(['"Authorization: Bearer $MCP_TOKEN"'] if has_credential else []),
        quote("Content-Type: application/json"),
        quote("Accept: application/json, text/event-stream"),
    ]


def _mirrored(
    arguments: Mapping[str, Any] | None, mirrored: Sequence[ParamHeader]
) -> list[tuple[str, str]]:
    """The headers that repeat arguments, with their values."""
    headers = []
    for param in mirrored:
        value: Any = arguments
        for step in param.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers.append((param.name, "true" if value else "false"))
        elif isinstance(value, str | int | float):
            headers.append((param.name, str(value)))
    return headers


def _in_session(repetition: Repetition, revision: Revision) -> str:
    """The commands of a session that make the call."""
    return session_commands(
        repetition.url,
        _common(repetition.first),
        revision,
        _capabilities(repetition.call),
        _body(repetition, {}),
    )


def _body(repetition: Repetition, before: Json) -> str:
    """The request as a shell word."""
    first = repetition.first
    params: Json = {**before, NAME_FIELDS.get(first.method, "name"): first.target}
    if first.method == "resources/read":
        return quote(request_body(first.method, params))
    if repetition.arguments is not None:
        arguments = dict(repetition.arguments)
        return quote(request_body(first.method, {**params, "arguments": arguments}))
    end = "{}}}"
    text = request_body(first.method, {**params, "arguments": {}})
    return f'{quote(text.removesuffix(end))}"$ARGUMENTS"{quote(end.removeprefix("{}"))}'


def _capabilities(call: Timeline) -> Json:
    """What the client must have declared, because it was asked for it."""
    methods = [str(question.entry.facts.get("method", "")) for question in call.questions]
    return dict(_CAPABILITIES[method] for method in methods if method in _CAPABILITIES)


def _value(text: str) -> str:
    """A header value: as it is, or in Base64 (streamable-http, "Value Encoding")."""
    if _PLAIN.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _notes(repetition: Repetition, revision: Revision | None) -> list[str]:
    call, first = repetition.call, repetition.first
    notes = []
    if first.method != "resources/read":
        if repetition.arguments is None:
            notes.append("Put the arguments into `$ARGUMENTS`, as JSON.")
            notes += [
                f"The tool wants `Mcp-Param-{param.name}` with the argument `{'.'.join(param.path)}`, if it is given."
                for param in repetition.mirrored
                if revision is None
            ]
        elif REDACTED in json.dumps(repetition.arguments):
            notes.append(f"Values that are `{REDACTED}` were not recorded: fill them in.")
    if revision is not None:
        notes.append(
            f"Revision {revision.name} has sessions: the commands begin one with `initialize`, whose "
            "reply has the session id, and call in it."
        )
    if any(entry.delivery == Delivery.TASK for entry in call.entries):
        notes.append("The call became a task. These commands do not ask for one.")
    elif call.questions and revision is None:
        notes.append("The reply has the first questions. The client continues from there.")
    elif call.questions:
        notes.append("The questions come on the stream. Answers are separate POSTs in the session.")
    if first.delivery == Delivery.PLAYGROUND:
        notes.append("The call was a trial, without an HTTP request of a client.")
    return notes
