"""Sessions by hand: HTTP of the session-based revisions, to whichever node a test likes."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.e2e import raw
from tests.e2e.processes import Server
from tests.e2e.raw import Reply
from tests.wire import check_message

PATIENCE = 60.0


@dataclass(frozen=True)
class Event:
    """One event of a stream."""

    id: str = ""
    message: dict[str, Any] = field(default_factory=dict)
    retry: int | None = None


class Events:
    """The stream of one response: its events as they come, until it ends."""

    def __init__(self, response: http.client.HTTPResponse, revision: str) -> None:
        self._response = response
        self._revision = revision
        self.last_id = ""

    def __iter__(self) -> Iterator[Event]:
        while (event := self.next()) is not None:
            yield event

    def next(self) -> Event | None:
        fields: dict[str, str] = {}
        while line := self._response.readline():
            if line == b"\n" and fields:
                return self._event(fields)
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name not in ("", ":"):
                fields[name] = value
        return None

    def message(self) -> dict[str, Any]:
        for event in self:
            if event.message:
                return event.message
        raise AssertionError("the stream ended first")

    def _event(self, fields: Mapping[str, str]) -> Event:
        self.last_id = fields.get("id", self.last_id)
        data, retry = fields.get("data", ""), fields.get("retry")
        message = check_message(data, revision=self._revision) if data else {}
        return Event(fields.get("id", ""), message, None if retry is None else int(retry))


@dataclass(frozen=True)
class Session:
    """A session. `server` is where its next request goes."""

    server: Server
    revision: str
    id: str = ""

    def at(self, port: int) -> "Session":
        return replace(self, server=replace(self.server, port=port))

    def headers(self, **other: str) -> dict[str, str]:
        wanted = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.server.token}",
            "MCP-Protocol-Version": self.revision if self.id else "",
            "Mcp-Session-Id": self.id,
            **{name.replace("_", "-"): value for name, value in other.items()},
        }
        return {name: value for name, value in wanted.items() if value}

    def send(self, message: Any = None, verb: str = "POST") -> Reply:
        body = b"" if message is None else json.dumps(message).encode()
        return raw.exchange(self.server, verb, "/t/demo/mcp", body, self.headers())

    def ask(self, method: str, id: Any = 1, **params: Any) -> Any:
        reply = self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        assert reply.status == 200, reply
        return check_message(reply.body, revision=self.revision)["result"]

    def notify(self, method: str, **params: Any) -> None:
        reply = self.send({"jsonrpc": "2.0", "method": method, "params": params})
        assert (reply.status, reply.body) == (202, b"")

    @contextmanager
    def stream(self, message: Any = None, **headers: str) -> Iterator[Events]:
        """A response that is read as it comes: of a POST, or of a GET if there is nothing to post."""
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        with closing(line):
            body = None if message is None else json.dumps(message).encode()
            verb = "GET" if message is None else "POST"
            line.request(verb, "/t/demo/mcp", body, self.headers(**headers))
            response = line.getresponse()
            assert response.status == 200, response.read()
            assert response.headers["content-type"] == "text/event-stream"
            yield Events(response, self.revision)


def begin(server: Server, revision: str, **capabilities: Any) -> Session:
    client = {"name": "by hand", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}
    session = Session(server, revision)
    reply = session.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    assert reply.status == 200, reply
    begun = replace(session, id=reply.headers["mcp-session-id"])
    begun.notify("notifications/initialized")
    return begun


def calling(tool: str, id: Any = 1, token: str | None = None, **arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
