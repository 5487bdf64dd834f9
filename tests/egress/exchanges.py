"""One request to a service of its own: the response, or the refusal in its words."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mcphost.egress.addresses import AllowedHost
from mcphost.egress.client import ValuesToMask, no_secrets, no_values
from mcphost.egress.errors import EgressError
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.egress.secret_values import Secret, SecretHandle, SecretPlace
from tests.egress.conftest import Arrived, Handler, Service, local, opened, running, url

GET: Final = OutgoingRequest("")
KEY: Final = SecretHandle("key")
KEYED: Final = OutgoingRequest("", headers=(("X-Key", KEY),))
"""A request with the secret `key` in a header."""
ANYWHERE: Final = frozenset(SecretPlace)


def saying(*parts: bytes, closes: bool = False) -> Handler:
    """Return a handler that writes these bytes."""

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if closes:
            writer.close()

    return handler


def revealing(
    service: Service, value: str, places: frozenset[SecretPlace] = ANYWHERE
) -> Callable[[str], Awaitable[Secret | None]]:
    """Return a `Reveal` that knows `key`, for one service."""
    host = AllowedHost.parse(f"http://127.0.0.1:{service.port}")

    async def reveal(name: str) -> Secret | None:
        return Secret(value, (host,), places) if name == "key" else None

    return reveal


def hiding(*values: str) -> ValuesToMask:
    """Return a `ValuesToMask` by which every service may have these values."""

    async def values_to_mask() -> Sequence[str]:
        return values

    return values_to_mask


@dataclass
class Exchange:
    """What a service read, and what came of it: a response or an error."""

    service: Service
    outcome: ReceivedResponse | EgressError

    @property
    def response(self) -> ReceivedResponse:
        assert isinstance(self.outcome, ReceivedResponse), self.outcome
        return self.outcome

    @property
    def arrived(self) -> list[Arrived]:
        return self.service.arrived

    def refused(self, error: type[EgressError], words: str = "") -> str:
        """Return the text of an error that must be of this type and have these words."""
        assert isinstance(self.outcome, error), self.outcome
        assert words in str(self.outcome)
        return str(self.outcome)


async def exchange(
    handler: Handler,
    request: OutgoingRequest = GET,
    secret: str = "",
    places: frozenset[SecretPlace] = ANYWHERE,
    hidden: ValuesToMask = no_values,
    **limits: Any,
) -> Exchange:
    """Send a request, its URL a path, to a service of its own; `secret` is the value of `key`."""
    async with running(handler) as service, opened(service) as egress:
        reveal = revealing(service, secret, places) if secret else no_secrets
        sent = replace(request, url=url(service, request.url or "/"))
        try:
            received = await egress.send(sent, local(service, **limits), reveal, hidden)
        except EgressError as error:
            return Exchange(service, error)
        return Exchange(service, received)
