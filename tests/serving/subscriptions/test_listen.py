"""`subscriptions/listen`: acknowledgment, notifications, end."""

import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.db import connection
from pytest_django import Settings

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue import services as tools
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.feed.cache import MISS
from mcphost.feed.loop import Loop, loop
from mcphost.identity.services import TokenRequest, issue
from mcphost.protocol.uris import normalize
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.options import options
from mcphost.serving.subscriptions.registry import listeners
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast
from tests.conftest import Elsewhere
from tests.mcp import ask, begun, call, headers_for, listening, request, send

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = "tools/list_changed"
FOLLOWS_TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


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
@pytest.mark.parametrize("id", [7, "7", "", 0, -(2**53)])
async def test_a_change_is_told_under_the_id_of_the_request(served: Cast, id: str | int) -> None:
    async with listening("acme", served.owner.mcp_token, id, toolsListChanged=True) as heard:
        assert heard.honoured == {"toolsListChanged": True}
        await in_database(publish, served.acme.id, "news")
        assert await heard.told() == TOOLS
        await in_database(disable, served.acme.id, "news")
        assert await heard.told() == TOOLS


@pytest.mark.requirement("listen.only-what-was-asked")
async def test_nothing_is_told_that_was_not_asked_for(served: Cast) -> None:
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


async def test_a_change_in_another_tenant_is_not_told(served: Cast) -> None:
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


async def test_many_are_told_and_ended_without_keeping_others_waiting(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcphost.serving.subscriptions.registry.ENDED_AT_ONCE", 2)
    monkeypatch.setattr("mcphost.serving.subscriptions.registry.SECONDS", 0)
    async with AsyncExitStack() as stack:
        owner = served.owner.mcp_token
        opening = (listening("acme", owner, n, toolsListChanged=True) for n in range(7))
        all_of_them = [await stack.enter_async_context(one) for one in opening]
        await in_database(publish, served.acme.id, "news")
        assert [await one.told() for one in all_of_them] == [TOOLS] * 7
        shutdown.begin()
        for one in all_of_them:
            await one.ended()


async def test_opening_one_counts_as_a_call(served: Cast) -> None:
    fields = TenantFields(title="Acme", calls_per_minute=1)
    await in_database(update_tenant, served.acme.id, fields, actor=ACTOR)
    owner = served.owner.mcp_token
    async with listening("acme", owner, toolsListChanged=True):
        wanted = {"notifications": {"toolsListChanged": True}}
        reply = await ask("acme", "subscriptions/listen", wanted, owner)
        assert (reply.status, reply.error["code"]) == (429, -31429)


async def test_a_change_that_the_scopes_do_not_show_is_not_told(served: Cast) -> None:
    wide = await in_database(token, served, "mcp:list", "mcp:guarded")
    async with (
        listening("acme", wide, toolsListChanged=True) as seeing,
        listening("acme", served.owner.mcp_token, toolsListChanged=True) as blind,
    ):
        await in_database(publish, served.acme.id, "guarded", "mcp:guarded")
        assert await seeing.told() == TOOLS
        shutdown.begin()
        await blind.ended()


async def test_a_publication_that_changes_nothing_in_the_list_is_not_told(served: Cast) -> None:
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        await in_database(tools.grant_function, served.acme.id, "probe.echo", ACTOR)
        await in_database(tools.revoke_grant, served.acme.id, "probe.refuse", ACTOR)
        assert await heard.told() == TOOLS
        shutdown.begin()
        await heard.ended()


async def test_what_nobody_reads_of_a_request_is_not_kept_for_as_long_as_it_lasts(
    served: Cast,
) -> None:
    body = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    junk = b'"params":{"junk":["a marker"],'
    raw = orjson.dumps(body).replace(b'"params":{', junk)
    async with begun("acme", raw, headers=headers_for(body, served.owner.mcp_token)) as exchange:
        exchange.reply.method = "subscriptions/listen"
        assert "acknowledged" in (await exchange.message())["method"]
        kept = [one for one in gc.get_objects() if type(one) is list and one == ["a marker"]]
        assert not kept


async def test_an_id_that_every_message_would_carry_is_short(served: Cast) -> None:
    body = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    reply = await send("acme", {**body, "id": "x" * 257}, served.owner.mcp_token)
    assert (reply.status, reply.error["code"]) == (400, -32600)
    async with listening("acme", served.owner.mcp_token, "x" * 256, toolsListChanged=True):
        pass


@pytest.mark.requirement("listen.acknowledged-subset")
async def test_what_the_caller_may_not_list_is_left_out(served: Cast) -> None:
    narrow = await in_database(token, served, "mcp:call")
    async with listening("acme", narrow, toolsListChanged=True) as heard:
        assert heard.honoured == {}
        await heard.ended()


async def test_resources_that_the_caller_cannot_read_are_left_out(served: Cast) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["test://nowhere", "nonsense"]}
    async with listening("acme", served.owner.mcp_token, **wanted) as heard:
        assert heard.honoured == {"toolsListChanged": True}


async def test_tasks_of_which_no_notifications_are_sent_are_left_out(served: Cast) -> None:
    owner = served.owner.mcp_token
    async with listening("acme", owner, 1, FOLLOWS_TASKS, taskIds=["t-1"]) as heard:
        assert heard.honoured == {}
        await heard.ended()
    wanted = {"taskIds": ["t-1"], "toolsListChanged": True}
    async with listening("acme", owner, 1, FOLLOWS_TASKS, **wanted) as heard:
        assert heard.honoured == {"toolsListChanged": True}
        await in_database(publish, served.acme.id, "news")
        assert await heard.told() == TOOLS


async def test_a_client_that_cannot_follow_tasks_is_told_so_before_a_stream_opens(
    served: Cast,
) -> None:
    wanted = {"notifications": {"taskIds": ["t-1"], "toolsListChanged": True}}
    reply = await ask("acme", "subscriptions/listen", wanted, served.owner.mcp_token)
    assert (reply.status, reply.error["code"], reply.streamed) == (400, -32021, False)
    assert reply.error["data"] == {"requiredCapabilities": FOLLOWS_TASKS}
    assert reply.last["id"] == 1


async def test_anybody_may_listen_at_a_public_tenant(served: Cast) -> None:
    async with listening("commons", None, toolsListChanged=True) as heard:
        await in_database(publish, served.commons.id, "news")
        assert await heard.told() == TOOLS


async def test_what_changes_while_uris_are_looked_up_is_what_later_changes_are_held_against(
    served: Cast, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = served.acme.id

    def there(change: Callable[[UUID, str], None]) -> None:
        with elsewhere():
            change(acme, "news")

    def slowly(uri: str) -> str:
        if uri == uris[0]:
            with ThreadPoolExecutor(1) as feed:
                feed.submit(_polled).result()
        elif catalogue.cached_offering(acme) is MISS:
            time.sleep(0.005)  # changes are handled between two of many URIs
        return normalize(uri)

    uris = [f"a:{number}" for number in range(90)]
    monkeypatch.setattr("mcphost.serving.subscriptions.listen.normalize", slowly)
    monkeypatch.setattr("mcphost.serving.subscriptions.registry.SECONDS", 0)
    await ask("acme", "tools/list", {}, served.owner.mcp_token)
    await in_database(loop.stop)  # changes are read when this test polls
    await in_database(there, publish)
    wanted = {"toolsListChanged": True, "resourceSubscriptions": uris}
    async with listening("acme", served.owner.mcp_token, **wanted) as heard:
        await in_database(disable, acme, "news")  # the list is what it was before both
        assert await heard.told() == TOOLS


def _polled() -> None:
    loop.poll()
    connection.close()


@pytest.mark.requirement("listen.graceful-end")
async def test_a_drain_ends_subscriptions_by_their_result(served: Cast) -> None:
    async with listening("acme", served.owner.mcp_token, "s", toolsListChanged=True) as heard:
        shutdown.begin()
        await heard.ended()
    assert len(listeners) == 0
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as late:
        await late.ended()


@pytest.mark.requirement("listen.hang-up")
async def test_a_hang_up_ends_it_quietly(served: Cast) -> None:
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        before = heard.exchange.reply.raw
        assert len(listeners) == 1
        heard.exchange.hang_up()
        await heard.exchange.done()
        assert heard.exchange.reply.raw == before
    assert len(listeners) == 0


async def test_what_another_process_did_is_told_after_one_poll(
    served: Cast, elsewhere: Elsewhere
) -> None:
    def there() -> None:
        with elsewhere():
            publish(served.acme.id, "news")

    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        await in_database(there)
        await in_database(loop.poll)
        assert await heard.told() == TOOLS


async def test_two_processes_on_one_database_hear_of_each_other(served: Cast) -> None:
    """Another process's reader receives a change committed here when it polls."""
    other = Loop()
    told: list[str] = []
    other.subscribe("tool", lambda news: told.append(news.what))
    await in_database(other.poll)
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        await in_database(publish, served.acme.id, "news")
        assert await heard.told() == TOOLS
        await in_database(other.poll)
        assert "tool" in told


async def test_after_a_gap_only_what_changed_is_told(served: Cast, elsewhere: Elsewhere) -> None:
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
async def test_a_request_for_nothing_too_much_or_nonsense_is_refused(
    served: Cast, settings: Settings, fields: Any
) -> None:
    settings.MCPHOST_LISTEN_URIS = 3
    reply = await ask(
        "acme", "subscriptions/listen", {"notifications": fields}, served.owner.mcp_token
    )
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert "notifications" in reply.error["message"]


async def test_it_needs_a_filter_and_a_caller(served: Cast) -> None:
    reply = await ask("acme", "subscriptions/listen", {}, served.owner.mcp_token)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    wanted = {"notifications": {"toolsListChanged": True}}
    assert (await ask("acme", "subscriptions/listen", wanted)).status == 401
    assert (
        await ask("acme", "subscriptions/listen", wanted, served.stranger.mcp_token)
    ).status == 401


@pytest.mark.parametrize("setting", ["", "_PER_TENANT", "_PER_TOKEN"])
async def test_there_are_only_so_many_at_once(
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


async def test_processes_share_how_many_a_tenant_and_a_token_may_have(
    served: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MCPHOST_LISTENERS_PER_TOKEN = 5
    monkeypatch.setattr("mcphost.serving.limits.live", lambda: 2)
    owner = served.owner.mcp_token
    wanted = {"notifications": {"toolsListChanged": True}}
    async with (
        listening("acme", owner, toolsListChanged=True),
        listening("acme", owner, toolsListChanged=True),
    ):
        assert (await ask("acme", "subscriptions/listen", wanted, owner)).status == 429


async def test_news_rests_where_other_processes_may_serve(served: Cast, settings: Settings) -> None:
    settings.MCPHOST_ALONE = False
    settings.MCPHOST_FEED_SECONDS = 0.25
    assert options().settling_seconds == 0.25
    async with listening("acme", served.owner.mcp_token, toolsListChanged=True) as heard:
        await in_database(publish, served.acme.id, "news")
        assert await heard.told() == TOOLS


async def test_what_a_tool_announces_is_told_though_nothing_reads_differently(
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
