"""The port `http` of tests: real requests to services on loopback, with secrets by name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcphost.egress.client import Egress, EgressLimits, EgressPolicy
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.egress.secret_values import Secret, SecretPlace
from tests.egress.conftest import Handler, Service, local, opened, running


class Outgoing:
    """Sends requests to the services, with secrets that may go to the first of them only."""

    def __init__(self, egress: Egress, *services: Service, **secrets: str) -> None:
        self._egress = egress
        self._hosts = local(*services).hosts
        self._secrets = secrets

    async def send(self, request: OutgoingRequest, limits: EgressLimits) -> ReceivedResponse:
        policy = EgressPolicy("acme", self._hosts, limits)
        return await self._egress.send(request, policy, self._reveal)

    async def _reveal(self, name: str) -> Secret | None:
        if name not in self._secrets:
            return None
        return Secret(self._secrets[name], self._hosts[:1], frozenset(SecretPlace))


@asynccontextmanager
async def outgoing(handler: Handler, **secrets: str) -> AsyncIterator[tuple[Service, Outgoing]]:
    """Run a service, and yield it with a port that reaches nothing else."""
    async with running(handler) as service, opened(service) as egress:
        yield service, Outgoing(egress, service, **secrets)


def base(service: Service) -> str:
    return f"http://127.0.0.1:{service.port}"
