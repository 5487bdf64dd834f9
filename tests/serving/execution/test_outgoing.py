"""Requests of a tenant's tools, with secrets from the vault, over TLS."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

import pytest
from pytest_django import Settings

from mcphost.audit.last_use import LastUse
from mcphost.egress.client import Egress, EgressLimits
from mcphost.egress.errors import EgressSecretError
from mcphost.egress.messages import FormBody, OutgoingRequest
from mcphost.egress.secret_values import SecretHandle
from mcphost.feed.loop import loop
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving.database import in_database
from mcphost.serving.execution import outgoing
from mcphost.serving.execution.outgoing import TenantHttp
from mcphost.tenants.selectors import TenantSnapshot, tenant
from mcphost.vault.secrets import selectors
from mcphost.vault.secrets.services import change_secret, delete_secret, rotate_secret
from tests.cast import Cast
from tests.egress.conftest import Arrived, Authority, Service, authority, running, write
from tests.vault.secrets.tenant_secret import NAME, OLGA, OTHER, VALUE, stored

__all__ = ["authority"]

pytestmark = pytest.mark.django_db(transaction=True)


def found(tenant_id: UUID) -> TenantSnapshot:
    snapshot = tenant(tenant_id)
    assert snapshot is not None
    return snapshot


@asynccontextmanager
async def reaching(
    service: Service, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Requests of tenants reach the service under all names."""
    egress = Egress(
        loopback_ports=frozenset({service.port}),
        tls=authority.client(),
        resolve=lambda name: ["127.0.0.1"],
    )
    monkeypatch.setattr(outgoing.sender, "get", lambda: egress)
    try:
        yield
    finally:
        await egress.aclose()


async def echo_header(request: Arrived, writer: asyncio.StreamWriter) -> None:
    """Show what the first request had, for ever."""
    write(writer, 200, b"<a-value-of-a-secret>")


def narrowed(tenant_id: UUID, secret: UUID, host: str) -> None:
    change_secret(tenant_id, secret, hosts=[host], places=["header"], actor=OLGA)


AFTERWARDS: dict[str, Callable[[UUID, UUID, str], object]] = {
    "nothing": lambda tenant_id, secret, host: None,
    "narrowed": narrowed,
    "rotated": lambda tenant_id, secret, host: rotate_secret(tenant_id, secret, OTHER, actor=OLGA),
    "deleted": lambda tenant_id, secret, host: delete_secret(tenant_id, secret, actor=OLGA),
}


async def test_secrets_are_not_used_for_callers_without_a_credential(cast: Cast) -> None:
    await in_database(partial(stored, cast.acme.id, hosts=["a.example"]))
    http = TenantHttp(
        await in_database(found, cast.acme.id),
        Principal(PrincipalKind.ANONYMOUS, cast.acme.id),
    )
    sent = OutgoingRequest("https://a.example/", headers=(("X-Key", SecretHandle(NAME)),))
    with pytest.raises(EgressSecretError, match="without a credential"):
        await http.send(sent, EgressLimits())


@pytest.mark.parametrize("kind", [PrincipalKind.TOKEN, PrincipalKind.ANONYMOUS])
@pytest.mark.parametrize("afterwards", AFTERWARDS)
async def test_a_secret_is_masked_in_responses_under_every_host_name_of_the_service(
    afterwards: str,
    kind: PrincipalKind,
    cast: Cast,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tls = authority.server("a.example", "b.example", "c.example")
    async with (
        running(echo_header, tls) as service,
        reaching(service, authority, monkeypatch),
    ):
        hosts = [f"{name}.example:{service.port}" for name in "abc"]
        secret = await in_database(partial(stored, cast.acme.id, hosts=hosts[:2]))
        snapshot = replace(await in_database(found, cast.acme.id), outgoing_hosts=tuple(hosts))
        caller = Principal(PrincipalKind.TOKEN, cast.acme.id)
        sent = OutgoingRequest(f"https://{hosts[0]}/", headers=(("X-Key", SecretHandle(NAME)),))
        first = await TenantHttp(snapshot, caller).send(sent, EgressLimits())
        assert first.body == b"<[secret]>"
        assert service.arrived[0].headers["x-key"] == VALUE
        await in_database(AFTERWARDS[afterwards], cast.acme.id, secret, hosts[0])
        await in_database(loop.poll)
        http = TenantHttp(snapshot, replace(caller, kind=kind))
        for host in hosts:
            response = await http.send(OutgoingRequest(f"https://{host}/"), EgressLimits())
            assert response.body == b"<[secret]>"


def test_a_secret_is_masked_in_an_imported_document(cast: Cast, settings: Settings) -> None:
    rotate_secret(cast.acme.id, stored(cast.acme.id), OTHER, actor=OLGA)
    with serving_text(f"{VALUE} {OTHER}") as port:
        settings.MCPHOST_EGRESS_LOOPBACK_PORTS = frozenset({port})
        hosts = [f"http://127.0.0.1:{port}"]
        received = outgoing.fetch(cast.acme.id, hosts, f"{hosts[0]}/", EgressLimits())
        assert received.body == b"[secret] [secret]"
        other = outgoing.fetch(cast.globex.id, hosts, f"{hosts[0]}/", EgressLimits())
        assert other.body == f"{VALUE} {OTHER}".encode()


@contextmanager
def serving_text(text: str) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)


class Remembering:
    """A service that shows the body of the request before."""

    def __init__(self) -> None:
        self.last = b"nothing"

    async def __call__(self, request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, 200, self.last)
        self.last = request.body


async def test_a_secret_of_an_earlier_request_is_masked_in_later_responses(
    cast: Cast, authority: Authority, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        running(Remembering(), authority.server("localhost")) as service,
        reaching(service, authority, monkeypatch),
    ):
        host = f"localhost:{service.port}"
        await in_database(partial(stored, cast.acme.id, hosts=[host], places=["body"]))
        uses: list[UUID] = []
        monkeypatch.setattr(LastUse, "note", lambda _, row, now: uses.append(row))
        acme = await in_database(found, cast.acme.id)
        snapshot = replace(acme, outgoing_hosts=(host,))
        caller = Principal(PrincipalKind.TOKEN, cast.acme.id)
        http = TenantHttp(snapshot, caller)
        form = FormBody((("key", SecretHandle(NAME)),))
        first = OutgoingRequest(f"https://{host}/", "POST", content=form)
        assert (await http.send(first, EgressLimits())).body == b"nothing"
        assert len(uses) == 1
        uses.clear()
        selectors.forget_everything()  # as in another process
        second = OutgoingRequest(f"https://{host}/")
        received = await TenantHttp(snapshot, caller).send(second, EgressLimits())
        assert received.body == b"key=[secret]"
        assert uses == []  # to recognise it is not to use it
