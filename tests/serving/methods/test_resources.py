"""`resources/list`, `resources/templates/list`, `resources/read` (spec: server/resources)."""

import pytest

from mcphost.audit.selectors import payload
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.legacy import begin
from tests.mcp import Reply, ask
from tests.served import entries
from tests.serving.memory_primitives import CANARY, GUARD, publish, token_with
from tests.wire import SESSION_BASED

pytestmark = pytest.mark.django_db(transaction=True)


async def _read(offered: Cast, uri: str, token: str = "") -> Reply:
    return await ask("acme", "resources/read", {"uri": uri}, token or offered.owner.mcp_token)


async def _uris(token: str) -> list[str]:
    listed = (await ask("acme", "resources/list", token=token)).result["resources"]
    templates = (await ask("acme", "resources/templates/list", token=token)).result
    return [one["uri"] for one in listed] + [
        one["uriTemplate"] for one in templates["resourceTemplates"]
    ]


@pytest.mark.requirement("resources.list.served")
@pytest.mark.requirement("resources.templates.served")
async def test_resources_and_templates_are_listed_in_the_order_of_their_uris(offered: Cast) -> None:
    assert await _uris(offered.owner.mcp_token) == [
        "docs:handbook",
        "docs:logo",
        "file:///{+path}",
        "users://{name}/notes{?of}",
    ]
    for method in ("resources/list", "resources/templates/list"):
        result = (await ask("acme", method, token=offered.owner.mcp_token)).result
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        empty = (await ask("commons", method)).result
        assert (empty["ttlMs"], empty["cacheScope"]) == (0, "public")


@pytest.mark.requirement("caching.hints")
@pytest.mark.requirement("resources.read.text")
async def test_text_is_read_as_text(offered: Cast) -> None:
    result = (await _read(offered, "docs:handbook")).result
    assert result["contents"] == [{"uri": "docs:handbook", "mimeType": "text/plain", "text": "{}"}]
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@pytest.mark.requirement("resources.read.binary")
async def test_binary_content_is_read_as_a_blob(offered: Cast) -> None:
    (content,) = (await _read(offered, "docs:logo")).result["contents"]
    assert content == {"uri": "docs:logo", "mimeType": "image/png", "blob": "iVBORw0KGgo="}


@pytest.mark.requirement("resources.read.template")
@pytest.mark.parametrize(
    ("uri", "values"),
    [
        ("users://Ada/notes", '{"name":"Ada"}'),
        ("USERS://a%64a%40home/notes?of=May%202", '{"name":"ada@home","of":"May 2"}'),
        ("file:///a/b.txt", '{"path":"a/b.txt"}'),
    ],
)
async def test_a_uri_that_matches_a_template_is_read_with_its_values(
    offered: Cast, uri: str, values: str
) -> None:
    (content,) = (await _read(offered, uri)).result["contents"]
    assert (content["uri"], content["text"]) == (uri, values)


@pytest.mark.parametrize(
    ("written", "uri", "values"),
    [
        ("users://São Ada/notes", "users://S%C3%A3o%20Ada/notes", '{"name":"São Ada"}'),
        ("users://Ada/notes?of=100%", "users://Ada/notes?of=100%25", '{"name":"Ada","of":"100%"}'),
        ("file:///a[1]/{b}", "file:///a%5B1%5D/%7Bb%7D", '{"path":"a[1]/{b}"}'),
    ],
)
async def test_an_unencoded_uri_is_encoded_before_it_is_matched(
    offered: Cast, written: str, uri: str, values: str
) -> None:
    (content,) = (await _read(offered, written)).result["contents"]
    assert (content["uri"], content["text"]) == (uri, values)
    for revision in SESSION_BASED:
        session = await begin("acme", offered.owner.mcp_token, revision)
        (content,) = (await session.ask("resources/read", {"uri": written})).result["contents"]
        assert (content["uri"], content["text"]) == (uri, values)


async def test_a_resource_takes_precedence_over_a_template_that_matches_its_uri(
    offered: Cast,
) -> None:
    await in_database(
        publish, offered.acme.id, PrimitiveType.RESOURCE, "one", uri="file:///a/b.txt"
    )
    assert (await _read(offered, "file:///a/b.txt")).result["contents"][0]["text"] == "{}"


@pytest.mark.requirement("resources.read.unknown")
@pytest.mark.parametrize("uri", ["docs:nothing", "docs:Handbook", "users://Ada", "vault:gold"])
async def test_an_unknown_resource_is_an_error_with_its_uri(offered: Cast, uri: str) -> None:
    reply = await _read(offered, uri)
    assert reply.status == 400
    assert reply.error == {"code": -32602, "message": "Resource not found", "data": {"uri": uri}}
    assert await entries(uri, "resources/read") == []


@pytest.mark.requirement("resources.uris")
@pytest.mark.requirement("resources.traversal")
@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("handbook", "scheme"),
        ("docs:", "after its scheme"),
        ("docs:hand book", "not found"),
        ("docs:%zz", "not found"),
        ("docs:" + "x" * 2100, "2048"),
        ("file:///a/../b", "segment"),
        ("file:///%2e%2e/b", "segment"),
        ("file:///a%2f..%2fb", "not found"),
        ("file:///a%5C..", "not found"),
        ("file:///a%00", "not found"),
        ("file:///%ff", "not found"),
    ],
)
async def test_an_invalid_uri_is_an_error_with_the_reason(
    offered: Cast, uri: str, problem: str
) -> None:
    reply = await _read(offered, uri)
    assert (reply.status, reply.error["code"]) == (400, -32602)
    assert problem in reply.error["message"]
    assert reply.error["data"] == {"uri": uri}


@pytest.mark.requirement("resources.list.by-authorization")
@pytest.mark.requirement("resources.read.access")
async def test_a_resource_the_caller_may_not_see_is_answered_like_an_unknown_one(
    offered: Cast,
) -> None:
    allowed = await token_with(offered, "mcp:list", "mcp:call", GUARD)
    assert {"docs:guarded", "vault:{key}"} <= set(await _uris(allowed))
    for uri in ("docs:guarded", "vault:gold"):
        assert (await _read(offered, uri, allowed)).status == 200
        hidden, unknown = await _read(offered, uri), await _read(offered, "docs:other")
        assert hidden.raw.replace(uri.encode(), b"docs:other") == unknown.raw


async def test_a_hidden_primitive_does_not_hide_others_at_the_same_uri(offered: Cast) -> None:
    """Primitives that the caller may not know of do not hide others at the same URI."""
    acme = offered.acme.id
    await in_database(
        publish, acme, PrimitiveType.RESOURCE, "shadow", uri="file:///plan", scopes=(GUARD,)
    )
    await in_database(
        publish, acme, PrimitiveType.TEMPLATE, "first", uri="file:///{a}", scopes=(GUARD,)
    )
    (content,) = (await _read(offered, "file:///plan")).result["contents"]
    assert content["text"] == '{"path":"plan"}'


@pytest.mark.requirement("resources.read.internal-error")
@pytest.mark.parametrize("does", ["crash", "fail", "oddity"])
async def test_a_failing_resource_reveals_no_details(offered: Cast, does: str) -> None:
    await in_database(publish, offered.acme.id, PrimitiveType.RESOURCE, "bad", does, "docs:bad")
    reply = await _read(offered, "docs:bad")
    assert (reply.status, reply.error["code"]) == (200, -32603)
    assert reply.error["data"] == {"uri": "docs:bad"}
    assert CANARY.encode() not in reply.raw
    (entry,) = await entries("docs:bad", "resources/read")
    assert entry.outcome in ("crashed", "invalid_result")


async def test_a_secret_in_a_uri_is_not_recorded(offered: Cast) -> None:
    await in_database(
        publish,
        offered.acme.id,
        PrimitiveType.TEMPLATE,
        "safe",
        uri="safe:{password}",
        takes=("password",),
    )
    assert b"hunter2" in (await _read(offered, "safe:hunter2")).raw
    assert await entries("safe:hunter2", "resources/read") == []
    (entry,) = await entries("safe", "resources/read")
    said = await in_database(payload, entry.id, offered.acme.id)
    assert said is not None
    assert "hunter2" not in str(said.content)
