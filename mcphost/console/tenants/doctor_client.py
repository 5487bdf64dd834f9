"""The client with which Doctor calls this server at its own address, as MCP clients do."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

import orjson
from django.conf import settings

from mcphost.egress.addresses import AllowedHost, Target
from mcphost.egress.client import Egress, EgressLimits, EgressPolicy
from mcphost.egress.messages import Content, OutgoingRequest, ReceivedResponse
from mcphost.protocol.revisions import REVISION

TOTAL_SECONDS: Final = 20.0
"""How long a run may take, with all its requests."""
REQUEST_SECONDS: Final = 5.0
MAX_BYTES: Final = 1024 * 1024
SESSION_REVISION: Final = "2025-11-25"
JSON: Final = "application/json"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_POOL: Final = "doctor"
_CLIENT: Final = {"name": "Doctor", "version": "1"}


class DoctorTimeError(Exception):
    """The time of a run is over."""


class OwnServer(NamedTuple):
    """This server as clients reach it: its origin, and the slug of the tenant.

    `reached` may be called wherever it is; None if only a public address may.
    """

    origin: str
    slug: str
    reached: Target | None

    @classmethod
    def of(cls, origin: str, slug: str, port: str) -> Self:
        """Return the server at an origin. `port` is the one on which this process listens.

        Without MCPHOST_PUBLIC_URL the origin is made of the Host of a request, which its sender
        chooses: then no address but a public one is called, and this process itself.
        """
        target = Target.parse(origin)
        listens = target.host in _LOOPBACK and str(target.port) == port
        trusted = bool(settings.MCPHOST_PUBLIC_URL) or listens
        return cls(origin, slug, target if trusted else None)

    @property
    def url(self) -> str:
        return f"{self.origin}/t/{self.slug}/mcp"


@dataclass
class DoctorClient:
    """Sends requests to this server, one after the other, and to no other server. Use it in a thread.

    Requests raise EgressError without a response, and DoctorTimeError once the time is over.
    """

    server: OwnServer
    _end: float = field(init=False, default=0.0)

    def __enter__(self) -> Self:
        self._end = time.monotonic() + TOTAL_SECONDS
        self._runner = asyncio.Runner()
        self._egress = Egress(own_server=self.server.reached)
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._egress.aclose())
        self._runner.close()

    def send(
        self,
        path: str,
        method: str = "GET",
        content: Content = None,
        **headers: str,
    ) -> ReceivedResponse:
        """Send a request to a path of this server. Underscores in names of headers are dashes."""
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise DoctorTimeError
        named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        request = OutgoingRequest(
            f"{self.server.origin}{path}", method, headers=named, content=content
        )
        limits = EgressLimits(
            total_seconds=min(REQUEST_SECONDS, remaining),
            response_bytes=MAX_BYTES,
            redirects=0,
            attempts=1,
        )
        policy = EgressPolicy(_POOL, (AllowedHost.parse(self.server.origin),), limits)
        return self._runner.run(self._egress.send(request, policy))

    def post(self, token: str, method: str, **headers: str) -> ReceivedResponse:
        """Send a request of the stateless revision to the tenant's endpoint."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        versions = {"MCP_Protocol_Version": REVISION, "Mcp_Method": method}
        return self._post_message(token, method, {"_meta": meta}, {**versions, **headers})

    def initialize(self, token: str) -> ReceivedResponse:
        """Begin a session."""
        params = {"protocolVersion": SESSION_REVISION, "capabilities": {}, "clientInfo": _CLIENT}
        return self._post_message(token, "initialize", params, {})

    def end_session(self, token: str, session: str) -> ReceivedResponse:
        return self.send(
            f"/t/{self.server.slug}/mcp",
            "DELETE",
            Authorization=f"Bearer {token}",
            Mcp_Session_Id=session,
            MCP_Protocol_Version=SESSION_REVISION,
        )

    def _post_message(
        self, token: str, method: str, params: Mapping[str, Any], headers: Mapping[str, str]
    ) -> ReceivedResponse:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        credential = {"Authorization": f"Bearer {token}"} if token else {}
        return self.send(
            f"/t/{self.server.slug}/mcp",
            "POST",
            orjson.dumps(message),
            Content_Type=JSON,
            Accept=f"{JSON}, text/event-stream",
            **credential,
            **headers,
        )


def fields_of(response: ReceivedResponse) -> Mapping[str, Any] | None:
    """Return the JSON object of a response, which may be the only event of a stream; None without."""
    body = response.body
    if (response.header("content-type") or "").startswith("text/event-stream"):
        events = [line for line in body.splitlines() if line.startswith(b"data:")]
        body = events[-1].removeprefix(b"data:") if events else b""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) else None
