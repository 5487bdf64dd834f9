"""`subscriptions/listen`: acknowledgment, notifications, end."""

from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue import services as tools
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.feed.loop import loop
from mcphost.identity.services import TokenRequest, issue
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.subscriptions.registry import listeners
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast
from tests.conftest import Elsewhere
from tests.mcp import ask, begun, call, listening, request

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = "tools/list_changed"


def publish(tenant: UUID, name: str, *scopes: str) -> None:
    fields = PrimitiveFields(name=name, config={"function": "probe.echo"}, scopes=scopes)
    tools.publish(tools.create(tenant, fields, ACTOR).id, ACTOR)


def disable(tenant: UUID, name: str) -> None:
    rows = {row.name: row for row in catalogue.primitives([tenant])}  # type: ignore[arg-type]
    tools.disable(rows[name].id, ACTOR)


def token(cast: Cast, *scopes: str) -> str:
    wanted = TokenRequest("narrow", scopes)
    return issue(cast.acme.id, cast.owner.user, wanted, actor=ACTOR).plaintext


@pytest.mark.requirement("listen.acknowledged-first")
@pytest.mark.requirement("listen.subscription-id")
@pytest.mark.parametrize("id", ["7", 0])
async def test_a_change_is_notified_with_the_subscription_id(served: Cast, id: str | int) -> None:
    async with listening("acme", served.owner.mcp_token, id, toolsListChanged=True) as heard:
        assert heard.honoured == {"toolsListChanged": True}
        await in_database(publish, served.acme.id, "news")
        assert await heard.told() == TOOLS
        await in_database(disable, served.acme.id, "news")
        assert await heard.told() == TOOLS


@pytest.mark.requirement("listen.only-what-was-asked")
async def test_only_requested_changes_are_notified(served: Cast) -> None:
    owner = served.owner.mcp_token
    async with (
        listening("acme", owner, promptsListChanged=True, toolsListChanged=False) as prompts,
        listening("acme", owner, toolsListChanged=True) as about_tools,
    ):
        assert prompts.honoured == {"promptsListChanged": True}
        await in_database(publish, served.acme.id, "news")
        assert await about_tools.told() == TOOLS
        shutdown.begin()
        await prompts.ended()
        await about_tools.ended()


async def test_a_change_in_another_tenant_is_not_notified(served: Cast) -> None:
    owner, stranger = served.owner.mcp_token, served.stranger.mcp_token
    async with (
        listening("acme", owner, toolsListChanged=True) as ours,
        listening("globex", stranger, toolsListChanged=True) as theirs,
    ):
        await in_database(publish, served.commons.id, "news")
        await in_database(publish, served.acme.id, "news")
        assert await ours.told() == TOOLS
        shutdown.begin()
        await theirs.ended()


async def test_opening_a_subscription_counts_as_a_call(served: Cast) -> None:
    fields = TenantFields(title="Acme", calls_per_minute=1)
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    owner = served.owner.mcp_token
    async with listening("acme", owner, toolsListChanged=True):
        wanted = {"notifications": {"toolsListChanged": True}}
        reply = await ask("acme", "subscriptions/listen", wanted, owner)
        assert (reply.status, reply.error["code"]) == (429, -31429)


async def test_a_change_hidden_by_scopes_is_not_notified(served: Cast) -> None:
    wide = await in_database(token, served, "mcp:list", "mcp:guarded")
    async with (
        listening("acme", wide, toolsListChanged=True) as seeing,
        listening("acme", served.owner.mcp_token, toolsListChanged=True) as blind,
    ):
        await in_database(publish, served.acme.id, "guarded", "mcp:guarded")
        assert await seeing.told() == TOOLS
        shutdown.begin()
        await blind.ended()


async def test_a_publication_that_does_not_change_the_list_is_not_notified(served: Cast) -> None:
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        await in_database(tools.grant_function, served.acme.id, "probe.echo", ACTOR)
        await in_database(tools.revoke_grant, served.acme.id, "probe.refuse", ACTOR)
        assert await heard.told() == TOOLS
        shutdown.begin()
        await heard.ended()


@pytest.mark.requirement("listen.acknowledged-subset")
async def test_lists_the_caller_may_not_read_are_left_out_of_the_subscription(served: Cast) -> None:
    narrow = await in_database(token, served, "mcp:call")
    async with listening("acme", narrow, toolsListChanged=True) as heard:
        assert heard.honoured == {}
        await heard.ended()


@pytest.mark.requirement("listen.graceful-end")
async def test_a_drain_ends_subscriptions_with_their_result(served: Cast) -> None:
    async with listening("acme", served.owner.mcp_token, "s", toolsListChanged=True) as heard:
        shutdown.begin()
        await heard.ended()
    assert len(listeners) == 0
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as late:
        await late.ended()


@pytest.mark.requirement("listen.hang-up")
async def test_a_disconnect_ends_the_subscription_without_a_result(served: Cast) -> None:
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        before = heard.exchange.reply.raw
        assert len(listeners) == 1
        heard.exchange.hang_up()
        await heard.exchange.done()
        assert heard.exchange.reply.raw == before
    assert len(listeners) == 0


async def test_a_change_by_another_process_is_notified_after_one_poll(
    served: Cast, elsewhere: Elsewhere
) -> None:
    def there() -> None:
        with elsewhere():
            publish(served.acme.id, "news")

    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        await in_database(there)
        await in_database(loop.poll)
        assert await heard.told() == TOOLS


async def test_after_a_gap_in_the_change_log_only_actual_changes_are_notified(
    served: Cast, elsewhere: Elsewhere
) -> None:
    def there() -> None:
        with elsewhere():
            publish(served.acme.id, "news")
        for drop in tuple(loop._gap_callbacks):
            drop()

    owner, stranger = served.owner.mcp_token, served.stranger.mcp_token
    async with (
        listening("acme", owner, toolsListChanged=True) as ours,
        listening("globex", stranger, toolsListChanged=True) as theirs,
    ):
        await in_database(there)
        assert await ours.told() == TOOLS
        shutdown.begin()
        await theirs.ended()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"toolsListChanged": False},
        {"resourceSubscriptions": []},
        {"resourceSubscriptions": ["a:" + "b" * 2048]},
        {"resourceSubscriptions": [f"a:{n}" for n in range(4)]},
        {"resourceSubscriptions": "a:b"},
        {"resourceSubscriptions": [1]},
        {"toolsListChanged": "yes"},
        {"toolsListChanged": None},
    ],
)
async def test_an_empty_oversized_or_invalid_filter_is_refused(
    served: Cast, settings: Settings, fields: Any
) -> None:
    settings.MCPHOST_LISTEN_URIS = 3
    reply = await ask(
        "acme", "subscriptions/listen", {"notifications": fields}, served.owner.mcp_token
    )
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert "notifications" in reply.error["message"]


@pytest.mark.parametrize("setting", ["", "_PER_TENANT", "_PER_TOKEN"])
async def test_the_number_of_concurrent_subscriptions_is_limited(
    served: Cast, settings: Settings, setting: str
) -> None:
    setattr(settings, f"MCPHOST_LISTENERS{setting}", 1)
    owner = served.owner.mcp_token
    body = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with listening("acme", owner, toolsListChanged=True):
        async with begun("acme", body, owner) as second:
            reply = (await second.done()).check()
            assert (reply.status, reply.error["code"]) == (429, -31429)
            assert int(reply.headers["retry-after"]) > 0
        if setting == "_PER_TOKEN":
            async with listening("acme", served.member.mcp_token, toolsListChanged=True):
                pass
    async with listening("acme", owner, toolsListChanged=True):
        pass


async def test_an_announcement_of_a_tool_is_notified_even_if_the_list_is_unchanged(
    served: Cast,
) -> None:
    owner = served.owner.mcp_token
    lists = {f"{name}ListChanged": True for name in ("tools", "prompts", "resources")}
    async with (
        listening("acme", owner, **lists) as heard,
        listening("globex", served.stranger.mcp_token, **lists) as stranger,
    ):
        for name in ("prompts", "tools", "resources"):
            await call("acme", "announce_list", {"name": name}, owner)
            assert await heard.told() == f"{name}/list_changed"
        shutdown.begin()
        await stranger.ended()
