"""A tool in each kind for clients of each delivery."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast, build_cast
from tests.prepared_rows import Kept
from tests.rounds.conftest import module
from tests.served import serving
from tests.serving.contracts.clients import DELIVERIES, Client, client
from tests.serving.contracts.offers import Offer, Service

KINDS = ("python", "http", "script")
EACH_ONCE = [
    *((kind, "modern") for kind in KINDS),
    *(("python", delivery) for delivery in DELIVERIES if delivery != "modern"),
]
"""Pairs with each kind and each delivery, for what takes long and is decided by one of the two."""
CONTRACTS = Kept(build_cast)


@pytest.fixture(
    params=[(kind, delivery) for kind in KINDS for delivery in DELIVERIES], ids="-".join
)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A kind and a delivery."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def acme(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    with serving(CONTRACTS, monkeypatch) as cast:
        module("contract").reset()
        yield cast


@pytest.fixture
async def offer(acme: Cast, pair: tuple[str, str], settings: Settings) -> AsyncIterator[Offer]:
    """The tool, published, with a service that `acme` may reach."""
    service = Service()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings.MCPHOST_EGRESS_LOOPBACK_PORTS = frozenset({port})
    base = f"http://127.0.0.1:{port}"
    fields = TenantFields(title="Acme", outgoing_hosts=(base,))
    await in_database(update_tenant, acme.acme.id, fields, actor=ACTOR)
    allowed = replace(acme, acme=replace(acme.acme, outgoing_hosts=(base,)))
    made = Offer(allowed, *pair, service, f"{base}/")
    await made.publish()
    yield made
    await process.stop()
    server.close()


@pytest.fixture
async def caller(offer: Offer) -> AsyncIterator[Client]:
    async with client(offer.cast, offer.delivery) as made:
        yield made
