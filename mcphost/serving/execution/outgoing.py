"""Outgoing HTTP requests of a tenant's tools: where they may go, and the tenant's secrets."""

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Final
from uuid import UUID

from django.conf import settings

from mcphost.egress.addresses import AllowedHost, secret_hosts
from mcphost.egress.client import Egress, EgressLimits, EgressPolicy
from mcphost.egress.errors import EgressSecretError
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.egress.secret_values import Secret, SecretPlace
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving import lookups
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.vault.errors import DamagedValueError, VaultError
from mcphost.vault.secrets.selectors import load_values_to_mask
from mcphost.vault.secrets.values import UsableSecret

EVERYWHERE: Final = (AllowedHost.parse("*"),)


class TenantHttp:
    """Implements `runtime.ports.Http` for the calls of one caller."""

    __slots__ = ("_principal", "_tenant")

    def __init__(self, tenant: TenantSnapshot, principal: Principal) -> None:
        self._tenant = tenant
        self._principal = principal

    async def send(self, request: OutgoingRequest, limits: EgressLimits) -> ReceivedResponse:
        """Send a request and return the whole response. Raises EgressError."""
        hosts = _hosts(self._tenant.outgoing_hosts) if self._tenant.outgoing_hosts else EVERYWHERE
        policy = EgressPolicy(self._tenant.id.hex, hosts, limits)
        return await sender.get().send(request, policy, self._reveal, self._values_to_mask)

    async def _reveal(self, name: str) -> Secret | None:
        if self._principal.kind is PrincipalKind.ANONYMOUS:
            raise EgressSecretError("Secrets are not used for callers without a credential.")
        try:
            secret = await lookups.secret(self._tenant.id, name)
            if secret is None:
                return None
            return _revealed(secret)
        except VaultError:
            raise EgressSecretError(f"The secret {name!r} cannot be read.") from None

    async def _values_to_mask(self) -> Sequence[str]:
        try:
            return await lookups.values_to_mask(self._tenant.id)
        except VaultError as error:
            raise _unreadable(error) from None


def fetch(tenant: UUID, allowed: Sequence[str], url: str, limits: EgressLimits) -> ReceivedResponse:
    """Send a GET request for a tenant, without secrets, from a thread. Raises EgressError.

    `allowed` are the hosts that the tenant permits. The tenant's secrets are masked in the response.
    """
    try:
        values = load_values_to_mask(tenant)
    except VaultError as error:
        raise _unreadable(error) from None

    async def values_to_mask() -> Sequence[str]:
        return values

    async def send() -> ReceivedResponse:
        hosts = _hosts(tuple(allowed)) if allowed else EVERYWHERE
        policy = EgressPolicy(tenant.hex, hosts, limits)
        egress = Egress(loopback_ports=settings.MCPHOST_EGRESS_LOOPBACK_PORTS)
        try:
            request = OutgoingRequest(url, headers=(("Accept", "application/json, */*"),))
            return await egress.send(request, policy, values_to_mask=values_to_mask)
        finally:
            await egress.aclose()

    return asyncio.run(send())


def _unreadable(error: VaultError) -> EgressSecretError:
    """Return why nothing can be masked. Of what else is wrong with keys, operators read in the log."""
    if isinstance(error, DamagedValueError):
        return EgressSecretError(
            f"The secret {error.name!r} of this tenant cannot be read, so it could not be masked in a "
            "response. Type its value in again, or delete it."
        )
    return EgressSecretError("The secrets of this tenant cannot be read.")


class _Sender:
    """The process's sender, made when it is first used."""

    def __init__(self) -> None:
        self._egress: Egress | None = None

    def get(self) -> Egress:
        if self._egress is None:
            self._egress = Egress(loopback_ports=settings.MCPHOST_EGRESS_LOOPBACK_PORTS)
        return self._egress

    async def close(self) -> None:
        """Close all connections, at the end of the process."""
        egress, self._egress = self._egress, None
        if egress is not None:
            await egress.aclose()


sender: Final = _Sender()


def _revealed(secret: UsableSecret) -> Secret:
    ports = settings.MCPHOST_EGRESS_LOOPBACK_PORTS
    hosts = tuple(host for entry in secret.hosts for host in secret_hosts(entry, ports))
    return Secret(secret.reveal(), hosts, frozenset(map(SecretPlace, secret.places)))


@cache
def _hosts(entries: tuple[str, ...]) -> tuple[AllowedHost, ...]:
    return tuple(map(AllowedHost.parse, entries))
