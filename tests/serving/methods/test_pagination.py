"""Pages of every list (spec: server/utilities/pagination, server/utilities/caching)."""

from typing import Any

import orjson
import pytest
from pytest_django import Settings

from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.legacy import begin
from tests.mcp import ask
from tests.serving.memory_primitives import GUARD, publish, token_with

pytestmark = pytest.mark.django_db(transaction=True)

REVISION = "2025-03-26"
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


async def _pages(method: str, token: str | None, tenant: str = "acme") -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = []
    params: dict[str, str] = {}
    while not pages or params:
        result = (await ask(tenant, method, params, token)).result
        pages.append(result)
        assert len(pages) < 100, "the pages go on and on"
        params = {"cursor": result["nextCursor"]} if "nextCursor" in result else {}
    return pages


@pytest.mark.requirement("pages.complete")
@pytest.mark.requirement("caching.scope-of-pages")
@pytest.mark.parametrize(("method", "field"), LISTS.items())
async def test_pages_join_to_the_whole_list(
    offered: Cast, settings: Settings, method: str, field: str
) -> None:
    token = await token_with(offered, "mcp:list", GUARD)
    (whole,) = await _pages(method, token)
    settings.MCPHOST_PAGE_SIZE = 1
    pages = await _pages(method, token)
    assert len(pages) == len(whole[field]) > 1
    assert [one for page in pages for one in page[field]] == whole[field]
    assert {(page["ttlMs"], page["cacheScope"]) for page in pages} == {(0, "private")}


async def test_a_page_has_at_most_as_many_bytes_as_a_result(
    offered: Cast, settings: Settings
) -> None:
    token = await token_with(offered, "mcp:list", GUARD)
    (whole,) = await _pages("tools/list", token)
    sizes = [len(orjson.dumps(tool)) for tool in whole["tools"]]
    settings.MCPHOST_RESULT_LIMIT = sum(sizes[:2])
    pages = await _pages("tools/list", token)
    assert [tool for page in pages for tool in page["tools"]] == whole["tools"]
    assert len(pages[0]["tools"]) == 2
    settings.MCPHOST_RESULT_LIMIT = 1
    assert len(await _pages("tools/list", token)) == len(sizes)


@pytest.mark.parametrize(("method", "field"), list(LISTS.items())[1:])
async def test_a_prepared_page_is_used_only_for_callers_with_the_same_scopes_and_revision(
    offered: Cast, method: str, field: str
) -> None:
    plain, guarded = offered.owner.mcp_token, await token_with(offered, "mcp:list", GUARD)
    older = await begin("acme", plain, REVISION)
    first = [
        (await ask("acme", method, {}, plain)).result[field],
        (await older.ask(method)).result[field],
        (await ask("acme", method, {}, guarded)).result[field],
    ]
    again = [
        (await ask("acme", method, {}, guarded)).result[field],
        (await older.ask(method)).result[field],
        (await ask("acme", method, {}, plain)).result[field],
    ]
    assert first == again[::-1]
    assert len(first[0]) == len(first[1]) < len(first[2])


@pytest.mark.requirement("caching.scope")
@pytest.mark.parametrize("method", ["prompts/list", "resources/list", "resources/templates/list"])
async def test_only_a_list_that_is_the_same_for_all_callers_is_public(
    offered: Cast, method: str
) -> None:
    (empty,) = await _pages(method, None, "commons")
    assert empty["cacheScope"] == "public"

    def guard() -> None:
        commons = offered.commons.id
        publish(commons, PrimitiveType.PROMPT, "guarded", scopes=(GUARD,))
        publish(commons, PrimitiveType.RESOURCE, "guarded", uri="docs:a", scopes=(GUARD,))
        publish(commons, PrimitiveType.TEMPLATE, "guarded", uri="docs:{b}", scopes=(GUARD,))

    await in_database(guard)
    (hidden,) = await _pages(method, None, "commons")
    assert hidden["cacheScope"] == "private"
    assert hidden[LISTS[method]] == []
