"""A tenant's whole life through the API alone: set up, called by a real client, audited, and its credentials
renewed and ended while it is used. Each request reaches the next of two processes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import ElicitRequestParams, ElicitResult

from tests.e2e import raw
from tests.e2e.api_program import ApiProgram
from tests.e2e.handmade_calls import at, heal, wait_until
from tests.e2e.nodes import Service
from tests.e2e.test_python_client import connected, every_tool, text_of

SLUG = "orders"
TENANT = f"/tenants/{SLUG}"
TOOL, IMPORTED = "cancel_order", "order_status"
DOCUMENT = """
openapi: 3.1.0
info: {title: Orders, version: "1"}
servers: [{url: "https://orders.example.com"}]
paths:
  /orders/{id}:
    get:
      operationId: order_status
      summary: Say where an order is
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: The order, content: {application/json: {schema: {type: object}}}}}
"""
SCRIPT = '''
def cancel_order(order: str) -> str:
    """Cancel an order once its owner has said why."""
    answer = elicit("reason", f"Why is {order} cancelled?", {"reason": str})
    return f"{order} is cancelled: {answer['reason']}."
'''
AUDITOR = """
from mcphost.audit.records import Actor
from mcphost.tenants import services
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Role
from django.contrib.auth.models import User
tenant, auditor = Tenant.objects.get(slug="{slug}").id, User.objects.get(username="auditor")
services.set_member(tenant, auditor, Role.AUDITOR, actor=Actor.system("a test"))
"""

Answer = Callable[[Any, ElicitRequestParams], Awaitable[ElicitResult]]


@dataclass(frozen=True)
class Shop:
    """The tenant, with what its client and its staff have."""

    service: Service
    staff: ApiProgram
    token_id: str
    token: str

    @property
    def url(self) -> str:
        return f"{self.service.server.base}/t/{SLUG}/mcp"

    def api(self, *issue: str) -> ApiProgram:
        return _program(self.service, *issue)

    def is_refused_everywhere(self) -> bool:
        """Whether each node refuses the client's token."""
        message = raw.request("tools/list", {})
        nodes = (self.service.first, self.service.second)
        replies = [raw.post(at(self.service, node), message, self.token, SLUG) for node in nodes]
        return all(reply.status == 401 for reply in replies)


@pytest.fixture(scope="module")
def shop(pair: Service) -> Shop:
    """A tenant with a published tool and a token for a client, all made by platform staff through the API."""
    heal(pair)
    staff = _program(pair, "--staff", "--owner", "admin")
    assert staff.create("/tenants", slug=SLUG, title="Orders")["slug"] == SLUG
    tool = staff.create(f"{TENANT}/tools", name=TOOL, kind="script", config={"code": SCRIPT})
    address = f"{TENANT}/tools/{tool['id']}"
    assert staff.act(f"{address}/publish", note="The first version.")["state"] == "published"
    _import(staff)
    account = staff.create(f"{TENANT}/service_accounts", name="assistant", description="")
    token = staff.create(
        f"{TENANT}/tokens",
        name="assistant",
        scopes=["mcp:call", "mcp:list"],
        service_account_id=account["id"],
    )
    return Shop(pair, staff, token["id"], token["token"])


def _import(staff: ApiProgram) -> None:
    """Make a tool of an operation of a document, as it was previewed, and publish it."""
    sent: dict[str, Any] = {"content": DOCUMENT, "operations": [{"source": "GET /orders/{id}"}]}
    preview = staff.act(f"{TENANT}/imports/preview", **sent)
    assert preview["ready"], preview
    (tool,) = staff.act(f"{TENANT}/imports/apply", **sent, digest=preview["digest"])["tools"]
    assert staff.act(f"{TENANT}/tools/{tool['id']}/publish", note="Imported.")["name"] == IMPORTED


def _program(service: Service, *issue: str) -> ApiProgram:
    text = service.manage(
        "token", "issue", "--audience", "api", "--name", "a program", *issue
    ).strip()
    return ApiProgram(service.server, text)


async def _cancel(shop: Shop, order: str, answer: Answer) -> str:
    async with connected(shop.url, shop.token, elicitation_callback=answer) as client:
        assert sorted(await every_tool(client)) == [TOOL, IMPORTED]
        result = await client.call_tool(TOOL, {"order": order})
        assert not result.is_error, result
        return text_of(result)


def _giving(reason: str) -> Answer:
    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"reason": reason})

    return answer


async def test_a_client_calls_and_answers_a_tenant_that_was_set_up_through_the_api(
    shop: Shop,
) -> None:
    text = await _cancel(shop, "A-17", _giving("sold out"))
    assert text == "A-17 is cancelled: sold out."
    assert shop.staff.get(f"{TENANT}/tokens/{shop.token_id}/use")["state"] == "live"


async def test_an_auditor_reads_a_call_with_its_question_through_the_api_and_the_view_is_recorded(
    shop: Shop,
) -> None:
    await _cancel(shop, "B-4", _giving("a duplicate"))
    shop.service.manage("shell", "-c", AUDITOR.format(slug=SLUG))
    owner = ("--tenant", SLUG, "--owner", "auditor", "--scope", "api:read")
    auditor = shop.api(*owner)
    listed = auditor.get(f"{TENANT}/calls?target={TOOL}&limit=1")["items"][0]
    assert (listed["state"], listed["rounds"], listed["input_requests"]) == ("complete", 2, 1)
    address = f"{TENANT}/calls/{listed['id']}"
    actions = [entry["action"] for entry in auditor.get(address)["entries"]]
    assert [actions.count("question.asked"), actions.count("answer.received")] == [1, 1]
    assert actions.count("round.finished") == 2
    shown = str(auditor.get(f"{address}/payloads")["payloads"])
    assert "Why is B-4 cancelled?" in shown
    assert "a duplicate" in shown
    shop.staff.get(f"{address}/payloads", status=403)
    auditor.create(f"{TENANT}/tools", status=403, name="another", kind="script", config={})
    (view,) = shop.staff.get(f"{TENANT}/entries?action=payload.viewed")["items"]
    assert view["actor"]["label"].startswith("auditor (")
    assert view["facts"]["call"] == listed["id"]
    assert view["facts"]["payloads"]


async def test_a_question_survives_a_key_rotation_and_a_revoked_token_is_refused(
    shop: Shop,
) -> None:
    rotated: list[str] = []

    def rotate() -> None:
        keys = shop.staff.get("/keys")["items"]
        (active,) = (key["id"] for key in keys if key["state"] == "active")
        rotated.append(shop.staff.create("/keys", replaces=active)["id"])
        wait_until(lambda: shop.staff.get(f"/keys/{rotated[0]}")["state"] == "active")

    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        await asyncio.to_thread(rotate)
        return ElicitResult(action="accept", content={"reason": "too late"})

    assert await _cancel(shop, "C-2", answer) == "C-2 is cancelled: too late."
    assert rotated
    async with connected(shop.url, shop.token, elicitation_callback=_giving("")) as client:
        revoked = shop.staff.act(f"{TENANT}/tokens/{shop.token_id}/revoke")
        assert revoked["revoked_at"]
        await asyncio.to_thread(wait_until, shop.is_refused_everywhere)
        with pytest.raises(MCPError):
            await client.call_tool(TOOL, {"order": "D-9"})
    assert shop.staff.get(f"{TENANT}/tokens/{shop.token_id}/use")["state"] == "revoked"
