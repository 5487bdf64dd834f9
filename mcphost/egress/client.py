"""The client: sends requests under a tenant's policy, within limits.

    egress = Egress(loopback_ports=settings.MCPHOST_EGRESS_LOOPBACK_PORTS)
    response = await egress.send(request, policy, reveal)
    await egress.aclose()

Environment variables for proxies are not read, and cookies are not kept.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from ssl import SSLContext, SSLError
from typing import Any, Final

import httpcore2

from mcphost.egress.addresses import AllowedHost, Target
from mcphost.egress.connecting import CheckedBackend, Resolve, system_resolve
from mcphost.egress.errors import (
    EgressAddressError,
    EgressConnectionError,
    EgressError,
    EgressRequestError,
    EgressResponseError,
    EgressSecretError,
    EgressTimeoutError,
)
from mcphost.egress.masked_values import PER_TEXT, Hidden, Masking, without_computed
from mcphost.egress.masking import Mask
from mcphost.egress.messages import (
    REDIRECTS,
    FilledRequest,
    OutgoingRequest,
    ReceivedResponse,
    build,
    redirected,
)
from mcphost.egress.reading import BodyLimit, header_text, read_body, too_large
from mcphost.egress.secret_values import Filler, Secret
from mcphost.egress.streams import TOO_LARGE_HEAD, ServiceStream
from mcphost.observability import counters

TRANSIENT: Final = frozenset({502, 503, 504})
"""Statuses after which a repeatable request is sent again."""
IDLE_SECONDS: Final = 30.0
"""How long a connection is kept, and a tenant's pool after its last request."""
RESOLVER_THREADS: Final = 32
MASKING_THREADS: Final = 3
"""Few, because threads that compute take turns with the event loop. A tenant has one at a time."""
UNMASKED_ROOM: Final = 256 * 1024
"""Bytes that a body with secrets may be longer than its limit, which the masked one has to fit: an error
would tell how long the secrets are."""
_OUTCOMES: Final[Mapping[type[EgressError], str]] = {
    EgressRequestError: "refused",
    EgressAddressError: "refused",
    EgressSecretError: "refused",
    EgressConnectionError: "unreachable",
    EgressTimeoutError: "timed_out",
    EgressResponseError: "unreadable",
}
"""What is counted for an error."""

Reveal = Callable[[str], Awaitable[Secret | None]]
"""Returns the secret with a name, or None. Called once for each handle's name, before sending."""
ValuesToMask = Callable[[], Awaitable[Iterable[str]]]
"""Returns the values of all secrets of the tenant, and those that they had: an earlier request, or another
name of the same service, may have brought one to it."""


async def no_secrets(name: str) -> Secret | None:
    """The `Reveal` of requests without secrets: it knows none."""
    return None


async def no_values() -> Iterable[str]:
    """The `ValuesToMask` of tenants without secrets."""
    return ()


@dataclass(frozen=True, slots=True)
class EgressLimits:
    """Limits of one request with its redirects and repetitions, in seconds, bytes and counts.

    `response_bytes` counts the body both as it was sent and after decompression; it and `header_bytes`
    count what is left when secrets are masked. `read_seconds` is the longest silence of a service. `attempts` counts the first one.
    """

    total_seconds: float = 30.0
    connect_seconds: float = 5.0
    read_seconds: float = 15.0
    request_bytes: int = 4 * 1024 * 1024
    response_bytes: int = 4 * 1024 * 1024
    header_bytes: int = 32 * 1024
    redirects: int = 5
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What a tenant's requests may reach, and their limits. Connections are shared by `tenant`."""

    tenant: str
    hosts: tuple[AllowedHost, ...]
    limits: EgressLimits = EgressLimits()

    def check(self, target: Target) -> None:
        """Raise EgressAddressError if no entry allows the scheme, host and port of a target."""
        if not any(host.matches(target) for host in self.hosts):
            raise EgressAddressError(f"{target.origin} is not among the allowed hosts.")


@dataclass(slots=True)
class _TenantPool:
    connections: httpcore2.AsyncConnectionPool
    slots: asyncio.Semaphore
    masking: Masking
    users: int = 0
    last_used: float = 0.0


@dataclass(slots=True)
class _Sending:
    """One request on its way: what it may do, its secrets, and what is hidden because of them."""

    request: OutgoingRequest
    target: Target
    policy: EgressPolicy
    secrets: Mapping[str, Secret]
    values_to_mask: ValuesToMask
    end: float
    masking: Masking
    hidden: Hidden = field(default_factory=Hidden)

    async def build(self, request: OutgoingRequest, target: Target) -> FilledRequest:
        """Return what is sent to a target; from now on, what it may have of secrets is masked."""
        self.hidden.add(await self.values_to_mask())
        filler = Filler(self.secrets, target)
        limit = self.policy.limits.request_bytes
        message = build(request, target, filler, limit, compressed=not self.hidden)
        self.hidden.add(message.credentials if self.secrets else ())
        if self.hidden and _asks_for_bytes(message):
            raise EgressSecretError(
                "A tenant with secrets cannot ask for a range of bytes: a service that has a secret "
                "could cut it, and then it is not recognised in the response."
            )
        return message

    async def masked(self, response: ReceivedResponse) -> ReceivedResponse:
        """Return a response without what is hidden, and without what was computed of it.

        Raises EgressResponseError if it is too large.
        """
        self.hidden.add(await self.values_to_mask())  # some may be new since it was asked for
        masked = await self.masking.masked(response, _size(response), self.hidden, _without)
        limits = self.policy.limits
        if len(masked.body) > limits.response_bytes:
            raise too_large(limits.response_bytes)
        if sum(len(name) + len(value) for name, value in masked.headers) > limits.header_bytes:
            raise EgressResponseError(TOO_LARGE_HEAD)
        is_whole = self.request.method == "GET" and response.status == 200
        if not self.hidden or (is_whole and masked == response):
            return masked
        return replace(masked, headers=without_computed(masked.headers))

    async def masked_text(self, text: str) -> str:
        return await self.masking.masked(text, len(text), self.hidden, Mask.text)

    async def masked_header(self, value: str) -> str:
        return await self.masking.masked(value, len(value), self.hidden, Mask.latin)


class Egress:
    """Sends requests. It belongs to one event loop, and never shares connections among tenants.

    `loopback_ports`: ports of this machine's loopback addresses that may be reached, too.
    `own_server`: an address of this server itself, whose host and port may be reached wherever they are.
    `tls`: verifies services; by default with the machine's certificate authorities.
    `per_tenant`: requests of one tenant at once; others wait, within their own time limit.
    """

    def __init__(
        self,
        *,
        loopback_ports: frozenset[int] = frozenset(),
        own_server: Target | None = None,
        tls: SSLContext | None = None,
        resolve: Resolve = system_resolve,
        per_tenant: int = 16,
    ) -> None:
        self._loopback_ports = loopback_ports
        self._own_server = own_server
        self._tls = tls or httpcore2.default_ssl_context()
        self._resolve = resolve
        self._per_tenant = per_tenant
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="egress-dns")
        self._masking = ThreadPoolExecutor(MASKING_THREADS, thread_name_prefix="egress-mask")
        self._pools: dict[str, _TenantPool] = {}

    async def send(
        self,
        request: OutgoingRequest,
        policy: EgressPolicy,
        reveal: Reveal = no_secrets,
        values_to_mask: ValuesToMask = no_values,
    ) -> ReceivedResponse:
        """Send a request and return the whole response. Raise EgressError if there is none.

        Every status is a response, also 4xx and 5xx. Redirects are followed under the same policy.
        In the response the request's secrets are masked, and all others of the tenant.
        """
        try:
            response = await self._send_checked(request, policy, reveal, values_to_mask)
        except EgressError as error:
            counters.egress_requests.add(_OUTCOMES[type(error)])
            raise
        counters.egress_requests.add(f"{response.status // 100}xx")
        return response

    async def _send_checked(
        self,
        request: OutgoingRequest,
        policy: EgressPolicy,
        reveal: Reveal,
        values_to_mask: ValuesToMask,
    ) -> ReceivedResponse:
        target = Target.parse(request.url)
        policy.check(target)
        pool = await self._pool(policy.tenant)
        pool.users += 1
        try:
            async with asyncio.timeout(policy.limits.total_seconds) as limit:
                secrets = await _reveal_secrets(request, reveal)
                end = limit.when() or 0.0
                sending = _Sending(
                    request, target, policy, secrets, values_to_mask, end, pool.masking
                )
                sending.hidden.add(secret.value for secret in secrets.values())
                async with pool.slots:
                    response = await _send(pool.connections, sending)
                return await sending.masked(response)
        except TimeoutError:
            raise EgressTimeoutError(
                f"{target.origin} did not answer within {policy.limits.total_seconds:g} s."
            ) from None
        finally:
            pool.users -= 1
            pool.last_used = asyncio.get_running_loop().time()

    async def aclose(self) -> None:
        """Close all connections. Requests under way fail."""
        for threads in (self._threads, self._masking):
            threads.shutdown(wait=False, cancel_futures=True)
        while self._pools:
            await self._pools.popitem()[1].connections.aclose()

    async def _pool(self, tenant: str) -> _TenantPool:
        """Return a tenant's pool, and close those that were not used for a while."""
        now = asyncio.get_running_loop().time()
        pool = self._pools.get(tenant)
        if pool is None:
            pool = self._pools[tenant] = self._new_pool(tenant)
        pool.last_used = now
        idle = [
            name
            for name, tenant_pool in self._pools.items()
            if not (tenant_pool.users or tenant_pool.masking.is_busy)
            and now - tenant_pool.last_used > IDLE_SECONDS
        ]
        for closing in [self._pools.pop(name) for name in idle]:
            await closing.connections.aclose()
        return pool

    def _new_pool(self, tenant: str) -> _TenantPool:
        backend = CheckedBackend(
            tenant, self._resolve, self._threads, self._loopback_ports, self._own_server
        )
        connections = httpcore2.AsyncConnectionPool(
            ssl_context=self._tls,
            max_connections=self._per_tenant,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=backend,
        )
        slots = asyncio.Semaphore(self._per_tenant)
        return _TenantPool(connections, slots, Masking(self._masking))


def _asks_for_bytes(message: FilledRequest) -> bool:
    """Whether a request asks for a part of the response by bytes (RFC 9110, section 14.2)."""
    return any(name == b"range" and b"bytes" in value.lower() for name, value in message.headers)


async def _reveal_secrets(request: OutgoingRequest, reveal: Reveal) -> Mapping[str, Secret]:
    secrets: dict[str, Secret] = {}
    for name in dict.fromkeys(handle.name for handle in request.handles()):
        secret = await reveal(name)
        if secret is None:
            raise EgressSecretError(f"There is no secret {name!r}.")
        secrets[name] = secret
    return secrets


async def _send(connections: httpcore2.AsyncConnectionPool, sending: _Sending) -> ReceivedResponse:
    """Send a request, again where it may be; mask the message of an error, not the response."""
    attempts = sending.policy.limits.attempts if sending.request.may_repeat else 1
    try:
        for attempt in range(1, attempts):
            pause = random.uniform(0.05, 0.15) * 2**attempt  # noqa: S311
            try:
                response = await _follow(connections, sending)
            except EgressConnectionError:
                pass
            else:
                pause = max(pause, _retry_after(response))
                remaining = sending.end - asyncio.get_running_loop().time()
                if response.status not in TRANSIENT or pause >= remaining:
                    return response
            await asyncio.sleep(pause)
        return await _follow(connections, sending)
    except EgressError as error:
        raise type(error)(await sending.masked_text(str(error))) from None


def _retry_after(response: ReceivedResponse) -> float:
    seconds = response.header("retry-after") or ""
    return float(seconds) if seconds.isascii() and seconds.isdigit() else 0.0


async def _follow(
    connections: httpcore2.AsyncConnectionPool, sending: _Sending
) -> ReceivedResponse:
    """Send a request and those that its redirects ask for."""
    request, target = sending.request, sending.target
    for _ in range(sending.policy.limits.redirects + 1):
        message = await sending.build(request, target)
        room = UNMASKED_ROOM if sending.hidden else 0
        response = await _exchange(connections, message, sending.policy.limits, room)
        location = response.header("location")
        if response.status not in REDIRECTS or location is None:
            return response
        if not sending.policy.limits.redirects:
            raise EgressResponseError(f"{target.origin} redirects, which is not followed.")
        request, following = redirected(request, message.target, response.status, location)
        leaves = following.origin != message.target.origin
        if leaves and await sending.masked_header(location) != location:
            raise EgressResponseError(f"{target.origin} redirects with a secret in the URL.")
        target = following
        sending.policy.check(target)
    raise EgressResponseError(
        f"{sending.target.origin} redirects more than {sending.policy.limits.redirects} times."
    )


async def _exchange(
    connections: httpcore2.AsyncConnectionPool,
    message: FilledRequest,
    limits: EgressLimits,
    room: int,
) -> ReceivedResponse:
    """Send one message and read its response, nothing masked yet.

    Of the body are read as many bytes as the limit and this room have.
    """
    target = message.target
    failure: EgressError
    try:
        return await _receive(connections, message, limits, room)
    except httpcore2.TimeoutException:
        failure = EgressTimeoutError(f"{target.origin} did not answer in time.")
    except httpcore2.LocalProtocolError:
        failure = EgressRequestError("The request is not valid HTTP.")
    except httpcore2.RemoteProtocolError:
        failure = EgressConnectionError(
            f"{target.origin} broke the connection, or does not speak HTTP."
        )
    except httpcore2.ConnectError as error:
        failure = EgressConnectionError(
            f"The certificate of {target.origin} is not valid, or it does not speak TLS."
            if _is_tls(error)
            else f"{target.origin} cannot be connected to."
        )
    except httpcore2.NetworkError:
        failure = EgressConnectionError(f"{target.origin} broke the connection.")
    raise failure


def _is_tls(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, SSLError):
        error = error.__cause__ or error.__context__
    return error is not None


async def _receive(
    connections: httpcore2.AsyncConnectionPool,
    message: FilledRequest,
    limits: EgressLimits,
    room: int,
) -> ReceivedResponse:
    target = message.target
    timeouts = {
        "connect": limits.connect_seconds,
        "read": limits.read_seconds,
        "write": limits.read_seconds,
        "pool": limits.total_seconds,
    }
    response = await connections.handle_async_request(
        httpcore2.Request(
            message.method,
            httpcore2.URL(
                scheme=target.scheme, host=target.host, port=target.port, target=target.path
            ),
            headers=list(message.headers),
            content=message.body,
            extensions={"timeout": timeouts},
        )
    )
    try:
        stream = response.extensions["network_stream"]
        if response.status < 200 or not isinstance(stream, ServiceStream):
            raise EgressResponseError(f"{target.origin} answers with status {response.status}.")
        stream.end_head()
        headers = header_text(response.headers)
        received = ReceivedResponse(response.status, headers, b"", target.url)
        has_body = message.method != "HEAD" and response.status not in (204, 304)
        limit = BodyLimit(limits.response_bytes, room)
        body = await read_body(response, received, limit, has_body=has_body)
        stream.end_response(_surplus(response))
        return replace(received, body=body)
    finally:
        await response.aclose()


def _surplus(response: httpcore2.Response) -> bytes:
    """Return what the parser was given after the response. The library has no name for it."""
    stream: Any = response.stream
    unread: bytes = stream._stream._connection._h11_state.trailing_data[0]
    return unread


def _size(response: ReceivedResponse) -> int:
    """Return how much work it is to search a response."""
    heads = sum(len(name) + len(value) + 2 * PER_TEXT for name, value in response.headers)
    return heads + len(response.url) + len(response.body)


def _without(mask: Mask, response: ReceivedResponse) -> ReceivedResponse:
    return ReceivedResponse(
        response.status,
        tuple((mask.name(name), mask.latin(value)) for name, value in response.headers),
        mask.bytes(response.body),
        mask.text(response.url),
    )
