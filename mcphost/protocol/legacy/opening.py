"""Turns a parsed body into the messages of a session-based client (spec: basic/index, Messages).

An unreadable body is refused as a whole, and none of it is executed. A bad request in a batch is
refused alone if its id could be read: the other messages of the batch are answered.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mcphost.protocol import tasks
from mcphost.protocol.errors import ProtocolError, invalid_request, shown
from mcphost.protocol.exact_numbers import check_numbers
from mcphost.protocol.exchange import Meta
from mcphost.protocol.legacy.errors import (
    SessionError,
    in_session,
    unsupported_revision,
)
from mcphost.protocol.nesting import check_depth
from mcphost.protocol.params import NAME_FIELDS, check_params, check_type, read_meta, required
from mcphost.protocol.revisions import REVISIONS, Revision

MAX_IN_A_BATCH: Final = 20
INITIALIZE: Final = "initialize"

_NOTIFICATIONS: Final = "notifications/"
_META_KEYS: Final = ("progressToken", "traceparent")
"""The `_meta` keys of these revisions that the server reads. All others belong to other parties."""
_LATER: Final = frozenset({"requestState", "inputResponses"})
"""Params of retries in the stateless revision. They have no meaning here."""


class LegacyRequest(NamedTuple):
    """A request. `meta` has the progress token and the trace parent of its `_meta`."""

    id: str | int
    method: str
    params: dict[str, Any]
    meta: Meta


class LegacyNotification(NamedTuple):
    """A notification."""

    method: str
    params: dict[str, Any]


class LegacyResponse(NamedTuple):
    """The client's response to a request of the server: either a result or an error."""

    id: str | int
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None


LegacyMessage = LegacyRequest | LegacyNotification | LegacyResponse


class LegacyBody(NamedTuple):
    """The messages of one POST. `batch`: they came in an array, and are answered in one.

    `version` is the supported revision in the header; None without a header. `refused` has the
    errors for invalid requests of a batch, each with the id of its request.
    """

    messages: tuple[LegacyMessage, ...]
    batch: bool = False
    version: str | None = None
    refused: tuple[SessionError, ...] = ()

    @property
    def requests(self) -> tuple[LegacyRequest, ...]:
        return tuple(message for message in self.messages if isinstance(message, LegacyRequest))

    @property
    def alone(self) -> str | int | None:
        """The id of a request that was posted alone; None for a batch or no request."""
        requests = () if self.batch else self.requests
        return requests[0].id if requests else None

    def without_refused(self, check: Callable[[LegacyRequest], None]) -> "LegacyBody":
        """Return the body without the requests that `check` refuses by raising ProtocolError.

        Refused requests of a batch are added to `refused`. For a single request the error is
        raised, with its id.
        """
        messages: list[LegacyMessage] = []
        refused = list(self.refused)
        for message in self.messages:
            if isinstance(message, LegacyRequest):
                try:
                    check(message)
                except ProtocolError as error:
                    refusal = in_session(error).with_id(message.id)
                    if not self.batch:
                        raise refusal from None
                    refused.append(refusal)
                    continue
            messages.append(message)
        return self._replace(messages=tuple(messages), refused=tuple(refused))


def open_body(version: str | None, parsed: Any, body: bytes) -> LegacyBody:
    """Read the messages of a body. `version` is the version header; `parsed` is any JSON.

    Raises SessionError, with the id of the request if it is one.
    """
    try:
        opened = _open(parsed, body)
        if (
            version is not None
            and version not in REVISIONS
            # The header of `initialize` does not count: its params name the revision.
            and not any(request.method == INITIALIZE for request in opened.requests)
        ):
            raise unsupported_revision(version).with_id(opened.alone)
    except ProtocolError as error:
        raise in_session(error) from None
    return opened._replace(version=version)


def fitting(opened: LegacyBody, revision: Revision) -> LegacyBody:
    """Check a POST against the revision of its session, whatever its header contains.

    Raises SessionError: INVALID_REQUEST for a batch in a revision without batches, INVALID_PARAMS
    for a single request without the params of its method. In a batch, such requests become
    `refused`.
    """
    if opened.batch and not revision.batches:
        message = f"Revision {revision.name} has no batches: send one message per POST"
        raise in_session(invalid_request(message))

    def check(request: LegacyRequest) -> None:
        if request.method in NAME_FIELDS and request.method not in tasks.METHODS:
            required(request.params, NAME_FIELDS[request.method], str, "params")
        check_params(request.method, request.params, revision.name)

    return opened.without_refused(check)


def _open(parsed: Any, body: bytes) -> LegacyBody:
    if type(parsed) is list:
        return _open_batch(parsed, body)
    if type(parsed) is not dict:
        raise invalid_request("The body must be a JSON object, or an array of them")
    try:
        check_depth(parsed, body)
        check_numbers(body)
    except ProtocolError as error:
        raise error.with_id(_id_of_request(parsed)) from None
    return LegacyBody((_read_message(parsed),))


def _open_batch(parsed: list[Any], body: bytes) -> LegacyBody:
    if not parsed:
        raise invalid_request("A batch holds at least one message")
    if len(parsed) > MAX_IN_A_BATCH:
        raise invalid_request(f"A batch holds at most {MAX_IN_A_BATCH} messages")
    check_depth(parsed, body)
    check_numbers(body)
    messages: list[LegacyMessage] = []
    refused: list[SessionError] = []
    for raw_message in parsed:
        try:
            if type(raw_message) is not dict:
                raise invalid_request("A batch holds JSON-RPC messages only")
            message = _read_message(raw_message)
            if isinstance(message, LegacyRequest) and message.method == INITIALIZE:
                raise invalid_request("initialize is sent alone, not in a batch").with_id(
                    message.id
                )
            messages.append(message)
        except ProtocolError as error:
            if error.request_id is None:
                raise
            refused.append(in_session(error))
    ids = [message.id for message in messages if isinstance(message, LegacyRequest)]
    ids += [error.request_id for error in refused if error.request_id is not None]
    if len(set(ids)) < len(ids):
        raise invalid_request("Two requests of the batch have the same id")
    return LegacyBody(tuple(messages), batch=True, refused=tuple(refused))


def _read_message(message: dict[str, Any]) -> LegacyMessage:
    if "method" not in message:
        return _response(message)
    try:
        return _call(message)
    except ProtocolError as error:
        raise error.with_id(_id_of_request(message)) from None


def _call(message: dict[str, Any]) -> LegacyRequest | LegacyNotification:
    _check_version(message)
    method = message["method"]
    if type(method) is not str:
        raise invalid_request("method must be a string")
    is_notification = method.startswith(_NOTIFICATIONS)
    if "id" not in message:
        if not is_notification:
            raise invalid_request(f"id is missing: {shown(method)} is not a notification")
        return LegacyNotification(method, _params(message))
    identifier = _id(message)
    if is_notification:
        raise invalid_request(f"{shown(method)} is a notification and has no id")
    params = _params(message)
    raw_meta = params.get("_meta", {})
    check_type("params._meta", raw_meta, dict)
    meta = read_meta({name: raw_meta[name] for name in _META_KEYS if name in raw_meta})
    if not _LATER.isdisjoint(params):
        params = {name: value for name, value in params.items() if name not in _LATER}
    return LegacyRequest(identifier, method, params, meta)


def _response(message: dict[str, Any]) -> LegacyResponse:
    """Read a response. Errors never carry its id, because the server chose that id."""
    _check_version(message)
    identifier = _id(message)
    outcomes = [name for name in ("result", "error") if name in message]
    if not outcomes:
        raise invalid_request("method is missing, and so are result and error")
    if len(outcomes) > 1:
        raise invalid_request("A response has either a result or an error, not both")
    value = message[outcomes[0]]
    if type(value) is not dict:
        raise invalid_request(f"{outcomes[0]} must be an object")
    if outcomes[0] == "result":
        return LegacyResponse(identifier, value, None)
    return LegacyResponse(identifier, None, value)


def _check_version(message: dict[str, Any]) -> None:
    if message.get("jsonrpc") != "2.0":
        raise invalid_request('jsonrpc must be "2.0"')


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    check_type("params", params, dict)
    checked_params: dict[str, Any] = params
    return checked_params


def _id(message: dict[str, Any]) -> str | int:
    identifier = message.get("id")
    if type(identifier) is str or type(identifier) is int:
        return identifier
    raise invalid_request("id must be a string or an integer of at most 64 bits")


def _id_of_request(message: dict[str, Any]) -> str | int | None:
    """Return the id of a message with a method, if it is a valid id."""
    identifier = message.get("id")
    usable = "method" in message and (type(identifier) is str or type(identifier) is int)
    return identifier if usable else None
