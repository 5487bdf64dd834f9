"""Calls per minute and at once, per tenant and per token."""

import asyncio

import pytest

from mcphost.identity.services import TokenRequest, issue
from mcphost.serving import limits
from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast
from tests.mcp import Reply, begun, call, request
from tests.served import probes

pytestmark = pytest.mark.django_db(transaction=True)


def _over_the_limit(reply: Reply) -> None:
    assert reply.status == 429
    assert int(reply.headers["retry-after"]) > 0
    assert reply.last["id"] == 1
    assert reply.error["data"]["retryAfter"] > 0


@pytest.mark.requirement("tools.call.rate")
async def test_a_tenant_over_its_calls_per_minute_gets_retry_after(served: Cast) -> None:
    fields = TenantFields(title="Acme", calls_per_minute=2)
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    for token in (served.owner.mcp_token, served.member.mcp_token):
        assert (await call("acme", "echo", {"text": "a"}, token)).status == 200
    _over_the_limit(await call("acme", "echo", {"text": "a"}, served.owner.mcp_token))
    assert (await call("commons", "echo", {"text": "a"})).status == 200


@pytest.mark.requirement("tools.call.rate")
async def test_a_token_over_its_own_limit_does_not_affect_other_tokens(served: Cast) -> None:
    wanted = TokenRequest("slow", ("mcp:list", "mcp:call"), calls_per_minute=1)
    slow = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    assert (await call("acme", "echo", {"text": "a"}, slow.plaintext)).status == 200
    _over_the_limit(await call("acme", "echo", {"text": "a"}, slow.plaintext))
    assert (await call("acme", "echo", {"text": "a"}, served.owner.mcp_token)).status == 200


async def test_calls_refused_by_a_tokens_limit_do_not_count_against_its_tenant(
    served: Cast,
) -> None:
    fields = TenantFields(title="Acme", calls_per_minute=2)
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    wanted = TokenRequest("slow", ("mcp:list", "mcp:call"), calls_per_minute=1)
    slow = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    assert (await call("acme", "echo", {"text": "a"}, slow.plaintext)).status == 200
    for _ in range(3):
        _over_the_limit(await call("acme", "echo", {"text": "a"}, slow.plaintext))
    assert (await call("acme", "echo", {"text": "a"}, served.owner.mcp_token)).status == 200


async def test_concurrent_calls_over_the_limit_are_refused_until_one_ends(served: Cast) -> None:
    fields = TenantFields(title="Acme", concurrent_calls=1)
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    token = served.owner.mcp_token
    async with begun("acme", request("tools/call", {"name": "hang"}), token) as exchange:
        async with asyncio.timeout(10):
            await probes().running.wait()
        _over_the_limit(await call("acme", "echo", {"text": "a"}, token))
        exchange.hang_up()
        await exchange.done()
        assert (await call("acme", "echo", {"text": "a"}, token)).status == 200


async def test_each_of_several_processes_allows_its_share_and_at_least_one_call(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = TenantFields(title="Acme", calls_per_minute=5)
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    token = served.owner.mcp_token
    monkeypatch.setattr(limits, "live", lambda: 2)
    for _ in range(2):
        assert (await call("acme", "echo", {"text": "a"}, token)).status == 200
    _over_the_limit(await call("acme", "echo", {"text": "a"}, token))
    monkeypatch.setattr(limits, "live", lambda: 1)  # the other left: earlier calls still count
    for _ in range(3):
        assert (await call("acme", "echo", {"text": "a"}, token)).status == 200
    _over_the_limit(await call("acme", "echo", {"text": "a"}, token))
    monkeypatch.setattr(limits, "live", lambda: 9)
    fields = TenantFields(title="Commons", public=True, calls_per_minute=5)
    await in_database(update_tenant, served.commons.id, fields, actor=ACTOR)
    assert (await call("commons", "echo", {"text": "a"})).status == 200
    _over_the_limit(await call("commons", "echo", {"text": "a"}))


async def test_threads_over_a_tenants_share_are_refused(served: Cast) -> None:
    token = served.owner.mcp_token
    hung = [asyncio.create_task(call("acme", "block", {}, token)) for _ in range(12)]
    async with asyncio.timeout(10):
        done, _ = await asyncio.wait(hung, return_when=asyncio.FIRST_COMPLETED)
    _over_the_limit(done.pop().result())
    assert (await call("commons", "threaded_steps", {})).text == "done"
    probes().release.set()
    await asyncio.gather(*hung)
