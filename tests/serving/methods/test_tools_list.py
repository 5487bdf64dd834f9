"""`tools/list` (spec: server/tools, server/utilities/pagination, server/utilities/caching)."""

import pytest
from pytest_django import Settings

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue import services as tools
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.identity.services import TokenRequest, issue
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.mcp import ask, call

pytestmark = pytest.mark.django_db(transaction=True)


async def _names(token: str) -> list[str]:
    reply = await ask("acme", "tools/list", token=token)
    return [tool["name"] for tool in reply.result["tools"]]


@pytest.mark.requirement("tools.list.deterministic-order")
@pytest.mark.requirement("tools.list.served")
async def test_tools_are_listed_in_the_order_of_their_names(served: Cast) -> None:
    names = await _names(served.owner.mcp_token)
    assert names == sorted(names)
    assert "echo" in names
    assert names == await _names(served.member.mcp_token)


@pytest.mark.requirement("pages.invalid-cursor")
async def test_cursors_of_another_caller_or_tenant_and_forged_ones_are_refused(
    served: Cast, settings: Settings
) -> None:
    settings.MCPHOST_PAGE_SIZE = 1
    own = (await ask("acme", "tools/list", token=served.owner.mcp_token)).result["nextCursor"]
    foreign = (await ask("commons", "tools/list")).result["nextCursor"]
    wanted = TokenRequest("narrow", ("mcp:list",))
    narrow = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    attempts = [
        (foreign, served.owner.mcp_token),
        (own, narrow.plaintext),
        (own[:-2], served.owner.mcp_token),
        ("nonsense", served.owner.mcp_token),
        ("", served.owner.mcp_token),
    ]
    for cursor, token in attempts:
        reply = await ask("acme", "tools/list", {"cursor": cursor}, token)
        assert (reply.status, reply.error["code"]) == (400, -32602)
        assert "cursor" in reply.error["message"]


async def test_a_published_change_is_visible_to_the_next_request(served: Cast) -> None:
    token = served.owner.mcp_token
    assert "second_echo" not in await _names(token)

    def publish() -> None:
        fields = PrimitiveFields(name="second_echo", config={"function": "probe.echo"})
        tools.publish(tools.create(served.acme.id, fields, ACTOR).id, ACTOR)

    await in_database(publish)
    assert "second_echo" in await _names(token)
    assert (await call("acme", "second_echo", {"text": "hi"}, token)).text == "hi"

    def disable() -> None:
        rows = {row.name: row for row in catalogue.primitives([served.acme.id])}
        tools.disable(rows["second_echo"].id, ACTOR)

    await in_database(disable)
    assert "second_echo" not in await _names(token)
    assert (await call("acme", "second_echo", {"text": "hi"}, token)).error["code"] == -32602


@pytest.mark.requirement("tools.call.access")
@pytest.mark.requirement("tools.list.by-authorization")
async def test_a_tool_with_a_scope_is_unknown_to_callers_without_it(served: Cast) -> None:
    def publish() -> str:
        fields = PrimitiveFields(
            name="guarded", config={"function": "probe.echo"}, scopes=("mcp:guarded",)
        )
        tools.publish(tools.create(served.acme.id, fields, ACTOR).id, ACTOR)
        wanted = TokenRequest("guard", ("mcp:list", "mcp:call", "mcp:guarded"))
        return issue(served.acme.id, served.owner.user, wanted, actor=ACTOR).plaintext

    allowed = await in_database(publish)
    assert "guarded" in await _names(allowed)
    assert (await call("acme", "guarded", {"text": "hi"}, allowed)).text == "hi"
    assert "guarded" not in await _names(served.owner.mcp_token)
    hidden = await call("acme", "guarded", {"text": "hi"}, served.owner.mcp_token)
    unknown = await call("acme", "nothing", {"text": "hi"}, served.owner.mcp_token)
    assert hidden.status == unknown.status == 400
    assert hidden.error["message"].replace("guarded", "nothing") == unknown.error["message"]


@pytest.mark.requirement("auth.insufficient-scope")
async def test_a_missing_scope_gets_403_and_is_named(served: Cast) -> None:
    wanted = TokenRequest("lists only", ("mcp:list",))
    narrow = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    reply = await call("acme", "echo", {"text": "hi"}, narrow.plaintext)
    assert reply.status == 403
    assert "mcp:call" in reply.error["message"]
    # With the scopes that the token has: a client may request just what is listed.
    assert reply.headers["www-authenticate"] == (
        'Bearer realm="mcphost", error="insufficient_scope", scope="mcp:call mcp:list", '
        'resource_metadata="http://localhost/.well-known/oauth-protected-resource/t/acme/mcp"'
    )
    assert (await ask("acme", "tools/list", token=narrow.plaintext)).status == 200


@pytest.mark.requirement("caching.scope")
async def test_only_a_list_that_is_the_same_for_all_callers_is_public(served: Cast) -> None:
    assert (await ask("commons", "tools/list")).result["cacheScope"] == "public"
    listed = await ask("acme", "tools/list", token=served.owner.mcp_token)
    assert listed.result["cacheScope"] == "private"

    def guard() -> None:
        fields = PrimitiveFields(
            name="guarded", config={"function": "probe.echo"}, scopes=("mcp:guarded",)
        )
        tools.publish(tools.create(served.commons.id, fields, ACTOR).id, ACTOR)

    await in_database(guard)
    assert (await ask("commons", "tools/list")).result["cacheScope"] == "private"
