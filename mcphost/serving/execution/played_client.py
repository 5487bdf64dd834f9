"""The client that a trial plays: its revision, what it declares, and its messages.

What follows from a revision and its capabilities is decided where it is for every call. Here are
only the messages that such a client would send and receive.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.legacy.capabilities import client_capabilities, initialize_result
from mcphost.protocol.legacy.errors import in_session
from mcphost.protocol.legacy.questions import question_params_for
from mcphost.protocol.legacy.results import convert_result
from mcphost.protocol.legacy.tasks import TASK
from mcphost.protocol.revisions import REVISION, REVISIONS, Era, Revision
from mcphost.protocol.tasks import EXTENSION, declared
from mcphost.runtime.program import TaskSupport
from mcphost.serving.replies import Asking, Reply, finish

NAME: Final = "mcphost console"
VERSION: Final = "1"
INFO: Final[Mapping[str, str]] = MappingProxyType({"name": NAME, "version": VERSION})
TOKEN: Final = "trial"  # noqa: S105 - of progress, no secret
"""The progress token of its requests."""
LEVEL: Final = "debug"
"""The lowest level of log messages that it wants."""
OPAQUE: Final = "(sealed)"
"""Stands for states and for ids that the server seals."""
EVERYTHING: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}},
        "roots": {},
        "extensions": {EXTENSION: {}},
    }
)
"""The capabilities of a client that can do all that a tool may ask for. Requests for a model or for
folders are taken only to let them be refused."""
_METHOD: Final = "tools/call"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlayedClient:
    """A client of one revision. `declares` has its capabilities, in the shape of the stateless revision."""

    revision: str = REVISION
    declares: Mapping[str, Any] = field(default_factory=lambda: EVERYTHING)

    @property
    def era(self) -> Era:
        return Era.MODERN if self.session_revision is None else Era.LEGACY

    @property
    def session_revision(self) -> Revision | None:
        """The revision, if it has sessions."""
        return REVISIONS.get(self.revision)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server takes it to be capable of."""
        if self.session_revision is None:
            return self.declares
        return client_capabilities(self.session_revision, self.declares)

    def params(self, tool: str, arguments: Mapping[str, Any], support: TaskSupport) -> Json:
        """The params of its request to a tool, without `_meta`. In a session a request says itself
        whether it is to become a task."""
        params: Json = {"name": tool, "arguments": arguments}
        revision = self.session_revision
        in_sessions = revision is not None and revision.tasks
        if in_sessions and support is not TaskSupport.NEVER and declared(self.declares):
            params[TASK] = {}
        return params

    def request(self, round: int, params: Mapping[str, Any]) -> Json:
        """Its request for a round, with these params."""
        meta: Json = {"progressToken": TOKEN}
        if self.session_revision is None:
            meta |= {
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientInfo": dict(INFO),
                "io.modelcontextprotocol/clientCapabilities": dict(self.declares),
                "io.modelcontextprotocol/logLevel": LEVEL,
            }
        return _request(self._id(round), _METHOD, {**params, "_meta": meta})

    def initialization(self, server: Mapping[str, Any]) -> tuple[Json, Json] | None:
        """The request that begins its session and the response; None for the stateless revision."""
        revision = self.session_revision
        if revision is None:
            return None
        declares = {name: can for name, can in self.declares.items() if name != "extensions"}
        params = {
            "protocolVersion": revision.name,
            "capabilities": declares,
            "clientInfo": dict(INFO),
        }
        result = initialize_result(revision, server, "")
        response = {"jsonrpc": "2.0", "id": 0, "result": result}
        return _request(0, "initialize", params), response

    def responses(
        self,
        round: int,
        params: Mapping[str, Any],
        responses: Mapping[str, Mapping[str, Any]],
    ) -> Iterator[Json]:
        """Its messages that bring the input responses of a round."""
        if self.session_revision is None:
            state = {"inputResponses": dict(responses), "requestState": OPAQUE}
            yield self.request(round, {**params, **state})
            return
        for response in responses.values():
            brings = dict(response) if "error" in response else {"result": dict(response)}
            yield {"jsonrpc": "2.0", "id": OPAQUE, **brings}

    def receives(self, round: int, reply: Reply, server: Mapping[str, Any]) -> Iterator[Json]:
        """The messages with which a round ends. Raises the ProtocolError of a refusal."""
        revision = self.session_revision
        if revision is not None and isinstance(reply, Asking):
            for input_request in reply.requests.values():
                method = str(input_request["method"])
                yield _request(
                    OPAQUE, method, question_params_for(revision, method, input_request["params"])
                )
            return
        if isinstance(reply, Asking):
            reply = replace(reply, state=OPAQUE)
        result = finish(reply, server)
        if revision is not None:
            result = convert_result(revision, _METHOD, result)
        yield {"jsonrpc": "2.0", "id": self._id(round), "result": dict(result)}

    def error(self, round: int, error: ProtocolError) -> ProtocolError:
        """The error as this client receives it."""
        received = error if self.session_revision is None else in_session(error, _METHOD)
        return received.with_id(self._id(round))

    def _id(self, round: int) -> int:
        """Each round of a stateless call is a request of its own; in a session all rounds belong to one."""
        return round if self.session_revision is None else 1


def _request(id: str | int, method: str, params: Mapping[str, Any]) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": dict(params)}
