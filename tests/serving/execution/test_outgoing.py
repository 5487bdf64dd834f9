"""Requests of a tenant's tools, with secrets from the vault, over TLS."""

import asyncio
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest
from pytest_django import Settings

from mcphost.egress.client import Egress, EgressLimits
from mcphost.egress.messages import FormBody, OutgoingRequest
from mcphost.egress.secret_values import SecretHandle
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving.database import in_database
from mcphost.serving.execution import outgoing
from mcphost.serving.execution.outgoing import TenantHttp
from mcphost.tenants.selectors import TenantSnapshot, tenant
from mcphost.vault.secrets import selectors
from tests.cast import Cast
from tests.egress.conftest import Arrived, Authority, authority, running, write
from tests.vault.secrets.kit import NAME, stored

__all__ = ["authority"]

pytestmark = pytest.mark.django_db(transaction=True)


def found(tenant_id: UUID) -> TenantSnapshot:
    snapshot = tenant(tenant_id)
    assert snapshot is not None
    return snapshot


class Remembering:
    """A service that shows the body of the request before."""

    def __init__(self) -> None:
        self.last = b"nothing"

    async def __call__(self, request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, 200, self.last)
        self.last = request.body


async def test_a_service_that_repeats_the_secret_of_an_earlier_request_is_masked(
    cast: Cast, authority: Authority, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(Remembering(), authority.server("localhost")) as service:
        host = f"localhost:{service.port}"
        await in_database(partial(stored, cast.acme.id, hosts=[host], places=["body"]))
        uses: list[UUID] = []
        monkeypatch.setattr(selectors.secret_uses, "note", lambda row, now: uses.append(row))
        egress = Egress(
            loopback_ports=frozenset({service.port}),
            tls=authority.client(),
            resolve=lambda name: ["127.0.0.1"],
        )
        monkeypatch.setattr(outgoing.sender, "get", lambda: egress)
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
        await egress.aclose()
