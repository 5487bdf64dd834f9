"""Values too large for a request state: where they are stored, who can use them, and for how long."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from textwrap import dedent
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.calls.models import StatePart
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.sealing import tokens
from mcphost.sealing.tokens import Binding, Purpose
from mcphost.serving import request_state
from mcphost.serving.database import in_database
from mcphost.serving.execution.outgoing import sender
from mcphost.serving.request_state import RequestState
from mcphost.serving.tasks import upkeep
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from mcphost.vault import sealer
from tests.cast import ACTOR, Cast
from tests.egress.conftest import Arrived, read_request, write
from tests.mcp import Reply
from tests.rounds.client_steps import Asker, accept, asked, calling, done, failed, frozen, state_of

pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 60_000
GIVES_UP = "Too much is stored for calls that wait for an answer. Try again later."
SOURCE = """
def collect(pages: int) -> dict:
    sizes = []
    for number in range(pages):
        text = http.post("BASE", json={"number": number}).text
        answer = elicit(f"next-{number}", "Go on?", {"name": str})
        sizes.append([text[:6], len(text), answer["name"]])
    return {"sizes": sizes}
"""


@dataclass
class Pages:
    """A service with long pages, and the script that fetches them at `acme` and `globex`."""

    cast: Cast
    base: str = ""
    keys: list[str] = field(default_factory=list)
    scripts: list[UUID] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_request(reader, 1):
                self._respond(request, writer)
        finally:
            writer.close()

    def _respond(self, request: Arrived, writer: asyncio.StreamWriter) -> None:
        self.keys.append(request.headers["idempotency-key"])
        text = f"page-{len(self.keys)}".encode()
        write(writer, 200, text.ljust(SIZE, b"x"), Content_Type="text/plain")

    def publish(self, **annotations: bool) -> None:
        for tenant in (self.cast.acme, self.cast.globex):
            open_to = TenantFields(title="T", outgoing_hosts=(self.base,))
            update_tenant(tenant.id, open_to, actor=ACTOR)
            row = services.create(tenant.id, self._fields("", annotations), ACTOR)
            self.scripts.append(services.publish(row.id, ACTOR).id)

    def upgrade(self) -> None:
        """Publish other code that does the same: a paused script of before cannot go on."""
        services.update(self.scripts[0], self._fields("\n# upgraded", {}), ACTOR)
        services.publish(self.scripts[0], ACTOR)

    def _fields(self, more: str, annotations: Mapping[str, bool]) -> PrimitiveFields:
        code = dedent(SOURCE).strip().replace("BASE", f"{self.base}/") + more
        config = {"code": code, "annotations": dict(annotations)}
        return PrimitiveFields("collect", config, kind="script", description="Collect.")


@pytest.fixture
async def pages(asking: Cast, settings: Settings) -> AsyncIterator[Pages]:
    service = Pages(asking)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings.MCPHOST_EGRESS_LOOPBACK_PORTS = frozenset({port})
    service.base = f"http://127.0.0.1:{port}"
    yield service
    await sender.close()
    server.close()


def collecting(cast: Cast, pages: int = 2) -> Asker:
    return calling(cast.owner.mcp_token, "collect", pages=pages)


async def go_on(asker: Asker, reply: Reply, name: str = "x") -> Reply:
    """Answer what is asked."""
    answers = {key: accept(name=name) for key in asked(reply)}
    return await asker.leg(state_of(reply), answers)


async def rows() -> int:
    return await in_database(StatePart.objects.count)


async def test_large_responses_are_stored_beside_the_state_until_the_call_ends(
    asking: Cast, pages: Pages
) -> None:
    await in_database(pages.publish)
    asker = collecting(asking)
    first = await asker.leg()
    sizes = [len(state_of(first))]
    assert await rows() == 1
    second = await go_on(asker, first, "a")
    sizes.append(len(state_of(second)))
    assert max(sizes) < 16 * 1024
    assert await rows() == 2
    await in_database(lambda: upkeep.run(upkeep.CHORES))
    assert await rows() == 2, "none has expired"
    last = await go_on(asker, second, "b")
    assert last.result["structuredContent"] == {
        "sizes": [["page-1", SIZE, "a"], ["page-2", SIZE, "b"]]
    }
    assert await rows() == 0
    assert done(await go_on(asker, second, "b")) == done(
        last
    )  # the client repeats its last request
    assert len(set(pages.keys)) == len(pages.keys) == 2
    asked(await calling(asking.owner.mcp_token, "paint", what="it").leg())
    assert await rows() == 0, "what is small takes no row"


def _expire() -> None:
    StatePart.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def _swap() -> None:
    """Exchange what two rows have, as a person with access to the database might."""
    one, two = StatePart.objects.order_by("id")
    one.content, two.content = two.content, one.content
    StatePart.objects.bulk_update([one, two], ["content"])


def _delete() -> None:
    StatePart.objects.all().delete()


async def test_a_state_without_its_stored_responses_is_refused_like_an_expired_one(
    asking: Cast, pages: Pages
) -> None:
    await in_database(pages.publish)
    asker = collecting(asking).but(id=1)
    forged = frozen(await asker.leg("forged", {}))
    for number, harm in enumerate((_expire, _delete, _swap), 1):
        second = await go_on(asker, await asker.leg())
        await in_database(harm)
        assert frozen(await go_on(asker, second)) == forged, harm
        assert len(pages.keys) == 2 * number
        refused = Entry.objects.filter(action="state.refused")
        assert await in_database(refused.count) == 1 + number
        await in_database(_delete)


async def test_stored_responses_are_limited_per_tenant(
    asking: Cast, pages: Pages, settings: Settings
) -> None:
    await in_database(pages.publish)
    stranger = asking.stranger.mcp_token
    other = Asker(stranger, {"name": "collect", "arguments": {"pages": 1}}, tenant="globex")
    asked(await collecting(asking).leg())
    for limit, most in (
        ("MCPHOST_STATE_PARTS_PER_TENANT", 1),
        ("MCPHOST_STATE_PART_BYTES_PER_TENANT", 2 * SIZE),
    ):
        before, count = getattr(settings, limit), await rows()
        setattr(settings, limit, most)
        assert failed(await collecting(asking).leg()) == GIVES_UP, limit
        assert await rows() == count
        asked(await other.leg())
        setattr(settings, limit, before)
        await in_database(StatePart.objects.filter(tenant=asking.globex.id).delete)


async def _opened(tenant: UUID, token: str) -> RequestState:
    return request_state.read(await in_database(sealer.unseal, Purpose.STATE, tenant, token))


async def _sealed(tenant: UUID, state: RequestState) -> str:
    keys = await in_database(sealer.fetch, tenant)
    binding = Binding(Purpose.STATE, tenant, keys.salt)
    written = request_state.write(state)
    return tokens.seal(written, binding, keys.ring.active, secrets.token_bytes(24))


async def test_stored_responses_are_unusable_for_other_tenants_callers_and_calls(
    asking: Cast, pages: Pages
) -> None:
    """Even if a state could be made that names them."""
    await in_database(pages.publish)
    stolen = await _opened(asking.acme.id, state_of(await collecting(asking).leg()))
    params = {"name": "collect", "arguments": {"pages": 2}}
    answers = {"next-0": accept(name="x")}
    for person, tenant in (
        (asking.stranger, asking.globex),
        (asking.operator, asking.acme),
        (asking.owner, asking.acme),
    ):
        asker = Asker(person.mcp_token, params, tenant=tenant.slug)
        mine = await _opened(tenant.id, state_of(await asker.leg()))
        good = await _sealed(tenant.id, mine)
        forged = await _sealed(tenant.id, mine._replace(parts=stolen.parts))
        frozen(await asker.leg(forged, answers))
        asked(await asker.leg(good, answers))
