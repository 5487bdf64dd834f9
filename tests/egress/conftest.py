"""Services on loopback for the tests of egress: real sockets, real TLS with a test authority."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mcphost.egress.addresses import AllowedHost
from mcphost.egress.client import Egress, EgressLimits, EgressPolicy


@dataclass
class Arrived:
    """A request as the service read it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


Handler = Callable[[Arrived, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Service:
    """A service on loopback; `handler` writes what it answers, byte for byte."""

    handler: Handler
    port: int = 0
    arrived: list[Arrived] = field(default_factory=list)
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    serving: set["asyncio.Task[None]"] = field(default_factory=set)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.create_task(self.serve(reader, writer)))

    async def close(self) -> None:
        """End what is left of its connections."""
        for each in self.serving:
            each.cancel()
        await asyncio.gather(*self.serving, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while request := await read_request(reader, number):
                self.arrived.append(request)
                await self.handler(request, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.ended.set()
            writer.close()


async def read_request(reader: asyncio.StreamReader, connection: int) -> Arrived | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split(" ")
    headers: dict[str, str] = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Arrived(method, path, headers, body, connection)


def answer(status: int = 200, body: bytes = b"ok", **headers: str) -> Handler:
    """Return a handler that always answers the same; `_` in header names stands for `-`."""

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, status, body, **headers)

    return handler


def write(writer: asyncio.StreamWriter, status: int, body: bytes, **headers: str) -> None:
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)


async def echo(request: Arrived, writer: asyncio.StreamWriter) -> None:
    """Send back everything that arrived, in the body and in a header."""
    head = "\n".join(f"{name}: {value}" for name, value in request.headers.items())
    text = f"{request.method} {request.path}\n{head}\n\n".encode() + request.body
    write(writer, 200, text, X_Echo=request.headers.get("authorization", "none"))


@asynccontextmanager
async def running(
    handler: Handler, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Service]:
    service = Service(handler)
    server = await asyncio.start_server(service.accept, host, 0, ssl=tls)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        server.close()
        await service.close()


def policy(*entries: str, tenant: str = "acme", **limits: Any) -> EgressPolicy:
    hosts = tuple(AllowedHost.parse(entry) for entry in entries)
    return EgressPolicy(tenant, hosts, EgressLimits(**limits))


def local(*services: Service, host: str = "127.0.0.1", **limits: Any) -> EgressPolicy:
    return policy(*(f"http://{host}:{service.port}" for service in services), **limits)


def url(service: Service, path: str = "/", host: str = "127.0.0.1") -> str:
    return f"http://{host}:{service.port}{path}"


@asynccontextmanager
async def opened(*services: Service, **options: Any) -> AsyncIterator[Egress]:
    """An `Egress` that may reach the ports of the services."""
    ports = frozenset(service.port for service in services)
    egress = Egress(loopback_ports=ports, **options)
    try:
        yield egress
    finally:
        await egress.aclose()


@dataclass(frozen=True)
class Authority:
    """A certificate authority and the TLS contexts that it makes."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    folder: Path

    def client(self) -> ssl.SSLContext:
        pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        return ssl.create_default_context(cadata=pem)

    def server(self, *names: str, days: int = 1) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = signed(self, key, names, days)
        file = self.folder / f"{names[0]}-{days}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def signed(
    authority: Authority, key: ec.EllipticCurvePrivateKey, names: tuple[str, ...], days: int
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(named(names[0]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 10 * day)
        .not_valid_after(now + days * day)
        .add_extension(x509.SubjectAlternativeName(map(alternative, names)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(named("test authority"))
        .issuer_name(named("test authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=10))
        .not_valid_after(now + datetime.timedelta(days=10))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True
        )
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key, tmp_path_factory.mktemp("authority"))
