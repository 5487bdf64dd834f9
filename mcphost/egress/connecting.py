"""Connections to checked addresses, or to this server: resolve once, check every address, connect to one.

TLS, the Host header and the pool know the name only; what is connected to is the address that was
checked, so that a second DNS answer changes nothing.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from ipaddress import ip_address
from typing import Any

import httpcore2
import structlog

from mcphost.egress.addresses import Target, may_connect
from mcphost.egress.errors import EgressAddressError
from mcphost.egress.streams import ServiceStream

Resolve = Callable[[str], Sequence[str]]
"""Returns the IP addresses of a name. It blocks; raises OSError or UnicodeError without any."""

LOOKUPS_PER_TENANT = 4
"""Threads that the look-ups of one tenant occupy at once: a slow name server is the tenant's."""

log = structlog.get_logger(__name__)
# At DEBUG the library logs the headers of responses before secrets are masked.
logging.getLogger("httpcore2").setLevel(logging.INFO)


def system_resolve(host: str) -> Sequence[str]:
    """Resolve a name as the machine is configured to."""
    addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """The network of one tenant's pool. Raises EgressAddressError for what may not be reached."""

    def __init__(
        self,
        tenant: str,
        resolve: Resolve,
        threads: Executor,
        loopback_ports: frozenset[int],
        own_server: Target | None = None,
    ) -> None:
        self._tenant = tenant
        self._resolve = resolve
        self._threads = threads
        self._loopback_ports = loopback_ports
        self._own_server = None if own_server is None else (own_server.host, own_server.port)
        self._lookups = asyncio.Semaphore(LOOKUPS_PER_TENANT)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of httpcore2
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout) as limit:
                addresses = await self._checked(host, port)
                for index, address in enumerate(addresses[:-1]):
                    share = _share(limit.when(), len(addresses) - index)
                    try:
                        return await _connected(address, port, share)
                    except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                        continue
                return await _connected(addresses[-1], port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        addresses = await self._addresses(host)
        if may_connect(addresses, port, self._loopback_ports):
            return addresses
        if addresses and (host, port) == self._own_server:
            return addresses
        log.info("egress refused", tenant=self._tenant, host=host, port=port, addresses=addresses)
        raise EgressAddressError(
            f"{host} has no address on the public internet, or another one as well."
        )

    async def _addresses(self, host: str) -> Sequence[str]:
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        await self._lookups.acquire()
        loop = asyncio.get_running_loop()
        lookup = self._threads.submit(self._resolve, host)
        # A caller that gives up does not end the look-up: its thread stays occupied.
        lookup.add_done_callback(lambda _: _release(loop, self._lookups))
        return await _result(lookup)


def _release(loop: asyncio.AbstractEventLoop, lookups: asyncio.Semaphore) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(lookups.release)


async def _result(lookup: Future[Sequence[str]]) -> Sequence[str]:
    try:
        return await asyncio.wrap_future(lookup)
    except (OSError, UnicodeError):
        return []


async def _connected(address: str, port: int, seconds: float | None = None) -> ServiceStream:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, stream = await loop.create_connection(ServiceStream, address, port)
    except TimeoutError:
        raise httpcore2.ConnectTimeout from None
    except OSError as error:
        raise httpcore2.ConnectError from error
    return stream


def _share(end: float | None, parts: int) -> float | None:
    """Return an equal part of the time that is left, in seconds."""
    if end is None:
        return None
    return max(0.0, end - asyncio.get_running_loop().time()) / parts
