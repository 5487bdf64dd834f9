"""Which hosts and IP addresses may be reached.

A URL is read strictly into a `Target`. An `AllowedHost` is an entry of an allow-list. Addresses
are checked by `is_public`: a table of forbidden networks (RFC 6890 and later), so that the answer
does not depend on the version of Python.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Self
from urllib.parse import SplitResult, quote, urlsplit

import idna

from mcphost.egress.errors import EgressRequestError

MAX_URL = 8192
"""Characters of a URL, before and after its query is added."""
PORTS: Final = {"http": 80, "https": 443}

SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What is not Unicode text, and cannot be encoded."""
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_NETLOC = re.compile(r"(\[[^][]*\]|[^][:]*)(:[0-9]*)?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# What the URL standard of browsers, and many libraries, read as a part of an IPv4 address.
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1"})
_KEPT = "/:@!$&'()*+,;=~-._%"

_FORBIDDEN_V4: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT; has the metadata address 100.100.100.200
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's platform address, although it looks public
            "169.254.0.0/16",  # link-local; has the metadata address 169.254.169.254
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments; has the metadata address 192.0.0.192
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved; has the broadcast address
        ),
    )
)
# Only 2000::/3 is global unicast: mapped and compatible addresses, loopback, link-local,
# site-local, unique local (with the metadata address fd00:ec2::254), multicast and the local
# translation prefix 64:ff9b:1::/48 are outside of it.
_GLOBAL_V6: Final = ip_network("2000::/3")
_FORBIDDEN_V6: Final = tuple(
    map(
        ip_network,
        (
            "2001::/23",  # protocol assignments; has Teredo, which embeds IPv4 addresses
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which embeds IPv4 addresses
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64: Final = ip_network("64:ff9b::/96")
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is one of the public internet.

    Of the forms that embed an IPv4 address only the well-known prefix of NAT64 (RFC 6052) is
    accepted, if the embedded address is public: networks with IPv6 only need it.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _FORBIDDEN_V4)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address not in _GLOBAL_V6 or (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return False
    return not any(address in network for network in _FORBIDDEN_V6)


def may_connect(addresses: Iterable[str], port: int, loopback_ports: frozenset[int]) -> bool:
    """Return whether every address is public, or loopback on one of the named ports.

    False without an address, and for texts that are none.
    """
    try:
        parsed = [ip_address(address) for address in addresses]
    except ValueError:
        return False
    return bool(parsed) and all(
        is_public(address) or (_is_loopback(address) and port in loopback_ports)
        for address in parsed
    )


def _is_loopback(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is 127.0.0.0/8 or ::1 itself, in no translated form."""
    if isinstance(address, IPv4Address):
        return address.is_loopback
    return int(address) == 1 and address.scope_id is None


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: a URL that was read and normalised.

    `host` is lower-case ASCII without a trailing dot, or an IP address without brackets; `path`
    has the query, and no fragment.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an absolute http or https URL. Raise EgressRequestError if it is anything else."""
        if len(url) > MAX_URL:
            raise EgressRequestError(f"A URL may have at most {MAX_URL} characters.")
        parts = _split(url)
        path = quote(parts.path or "/", safe=_KEPT)
        query = f"?{quote(parts.query, safe=_KEPT + '?')}" if parts.query else ""
        return cls(parts.scheme, _host(parts), _port(parts), path + query)


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """An entry of an allow-list: `api.example.com`, `*.example.com:8443`, `http://localhost:9000`.

    Without a scheme only https is allowed, without a port only the scheme's own. `*.` stands for
    one or more labels, `*` alone for every host. A `Target` matches the normalised entry only.
    """

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, entry: str) -> Self:
        """Read an entry. Raise ValueError, with a message for the tenant, if it is malformed."""
        url = entry if "://" in entry else f"https://{entry}"
        scheme, _, rest = url.partition("://")
        wildcard = "*." if rest.startswith("*.") else ""
        if rest == "*" or rest.startswith("*:"):
            wildcard, rest = "*", f"any{rest[1:]}"
        try:
            target = Target.parse(f"{scheme}://{rest.removeprefix('*.')}")
        except EgressRequestError as error:
            raise ValueError(f"{entry!r} is not an allowed host: {error}") from None
        if target.path != "/" or rest.endswith(("/", "?", "#")):
            raise ValueError(f"{entry!r} is not an allowed host: it must have no path.")
        if wildcard == "*." and ("." not in target.host or _is_address(target.host)):
            raise ValueError(f"{entry!r} is not an allowed host: it allows too much.")
        return cls(
            target.scheme, wildcard if wildcard == "*" else wildcard + target.host, target.port
        )

    def matches(self, target: Target) -> bool:
        if (self.scheme, self.port) != (target.scheme, target.port):
            return False
        if self.host.startswith("*."):
            return target.host.endswith(self.host[1:])
        return self.host in ("*", target.host)


def secret_hosts(entry: str, loopback_ports: Collection[int]) -> Iterator[AllowedHost]:
    """Yield where a secret with this host may be sent: over TLS, and to an open loopback port also
    without it, because local services have no certificates."""
    host = AllowedHost.parse(entry)
    yield host
    if host.host in _LOOPBACK_NAMES and host.port in loopback_ports:
        yield replace(host, scheme="http")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _split(url: str) -> SplitResult:
    # urlsplit removes some of these, where other readers end the host at them.
    if _UNSAFE.search(url) or SURROGATE.search(url):
        raise EgressRequestError(
            "A URL must not contain spaces, control characters or backslashes."
        )
    try:
        parts = urlsplit(url)
    except ValueError:
        raise EgressRequestError("The URL is malformed.") from None
    if parts.scheme not in PORTS:
        raise EgressRequestError("A URL must begin with https:// (or http://).")
    if "@" in parts.netloc:
        raise EgressRequestError("A URL must not contain a user name or password.")
    if not _NETLOC.fullmatch(parts.netloc):
        raise EgressRequestError("The host and port of the URL are malformed.")
    return parts


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise EgressRequestError("The port of the URL must be a number from 1 to 65535.")
    return port or PORTS[parts.scheme]


def _host(parts: SplitResult) -> str:
    if parts.netloc.startswith("["):
        return _ipv6(parts.hostname or "")
    host = parts.hostname or ""
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except idna.IDNAError:
            raise EgressRequestError(
                "The host of the URL is not a valid international name."
            ) from None
    host = host.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise EgressRequestError("The host of the URL is not a valid name.")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise EgressRequestError(
                "An IPv4 address must be four decimal numbers without leading zeros."
            ) from None
    return host


def _ipv6(host: str) -> str:
    try:
        address = IPv6Address(host)
    except ValueError:
        raise EgressRequestError("The IPv6 address of the URL is malformed.") from None
    if address.scope_id is not None:
        raise EgressRequestError("An IPv6 address must not have a zone.")
    return address.compressed
