"""Behaviour of every modern request, independent of earlier requests (spec: basic/index,
server/tools)."""

import pytest
from pytest_django import Settings

from mcphost.catalogue import services as tools
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.mcp import ask, call
from tests.plugins.canaries import CANARY, grep

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.requirement("base.stateless")
async def test_capabilities_declared_in_one_request_do_not_apply_to_the_next(served: Cast) -> None:
    token = served.owner.mcp_token
    able = await call("acme", "needs_sampling", token=token, capabilities={"sampling": {}})
    assert able.text == "sampled"
    assert (await call("acme", "needs_sampling", token=token)).error["code"] == -32021


@pytest.mark.requirement("tools.list.not-by-connection")
async def test_the_tool_list_does_not_depend_on_earlier_requests(served: Cast) -> None:
    token = served.owner.mcp_token
    first = await ask("acme", "tools/list", token=token)
    await ask("acme", "server/discover", token=token)
    await call("acme", "echo", {"text": "a"}, token)
    await call("acme", "no_such_tool", {}, token, capabilities={"sampling": {}})
    again = await ask("acme", "tools/list", token=token, capabilities={"sampling": {}})
    assert again.result == first.result


@pytest.mark.requirement("tools.names-case")
async def test_tool_names_are_case_sensitive(served: Cast) -> None:
    token = served.owner.mcp_token
    assert (await call("acme", "echo", {"text": "a"}, token)).text == "a"
    assert (await call("acme", "Echo", {"text": "a"}, token)).error["code"] == -32602


@pytest.mark.requirement("pages.stable-cursors")
async def test_a_cursor_continues_at_its_position_although_tools_were_added_before_it(
    served: Cast, settings: Settings
) -> None:
    token = served.owner.mcp_token
    settings.MCPHOST_PAGE_SIZE = 2
    first = (await ask("acme", "tools/list", token=token)).result
    expected = (await ask("acme", "tools/list", {"cursor": first["nextCursor"]}, token)).result

    def publish() -> None:
        fields = PrimitiveFields(name="AAA_first", config={"function": "probe.echo"})
        tools.publish(tools.create(served.acme.id, fields, ACTOR).id, ACTOR)

    await in_database(publish)
    again = (await ask("acme", "tools/list", {"cursor": first["nextCursor"]}, token)).result
    assert [tool["name"] for tool in again["tools"]] == [t["name"] for t in expected["tools"]]


async def test_no_secret_sent_by_a_caller_is_logged(served: Cast) -> None:
    """Send secrets for which tests/plugins/canaries.py greps every log."""
    token = served.owner.mcp_token
    lines = grep.lines
    for wrong in (CANARY, f"{token}{CANARY}", f"mcph_{CANARY}", token[:-1]):
        assert (await ask("acme", "tools/list", token=wrong)).status == 401
    assert (await call("acme", "echo", {"text": CANARY}, token)).text == CANARY
    assert (await call("acme", "echo", {"text": 1, CANARY: CANARY}, token)).result["isError"]
    assert (await call("acme", CANARY, {"text": CANARY}, token)).error["code"] == -32602
    assert (await ask("acme", "tools/list", {"cursor": CANARY}, token)).error["code"] == -32602
    assert (await ask("acme", CANARY, {CANARY: CANARY}, token)).error["code"] == -32601
    assert grep.lines > lines
    assert grep.found == []
