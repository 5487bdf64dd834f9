"""The documents below `/.well-known/` by which clients discover OAuth."""

from typing import Any

import httpx2
import orjson
import pytest
from django.utils import timezone
from mcp.client.auth import utils
from mcp.shared.auth_utils import check_resource_allowed
from pytest_django import DjangoDbBlocker, Settings

from mcphost.audit import last_use
from mcphost.identity.oauth.connection_log import StepKind, attempts
from mcphost.serving.database import in_database
from mcphost.transport.oauth.metadata import well_known
from tests.cast import Cast
from tests.mcp import Exchange, Reply, request, send

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("stopped")]

ORIGIN = "http://localhost"
RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
SCOPES = ["mcp:list", "mcp:call"]
SLUGS = ("acme", "globex", "no-such-tenant", "a", "a" * 40)
NO_SLUGS = ("UPPER", "a b", "a" * 41, "démo", "-a", "a-", "", "a/b")


async def get(path: str, method: str = "GET", **headers: str) -> Reply:
    exchange = Exchange(path, {"host": "localhost", **headers}, method)
    exchange.write(b"")
    return await exchange.done()


async def test_the_metadata_of_the_authorization_server_names_what_it_supports() -> None:
    assert (await get(SERVER)).last == {
        "issuer": ORIGIN,
        "authorization_endpoint": f"{ORIGIN}/authorize",
        "token_endpoint": f"{ORIGIN}/token",
        "registration_endpoint": f"{ORIGIN}/register",
        "revocation_endpoint": f"{ORIGIN}/revoke",
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


async def test_the_metadata_of_the_server_is_the_same_below_the_path_of_any_tenant() -> None:
    root = await get(SERVER)
    for path in ("/", *(f"/t/{slug}/mcp{end}" for slug in SLUGS for end in ("", "/"))):
        reply = await get(SERVER + path)
        assert (reply.status, reply.headers, reply.raw) == (200, root.headers, root.raw), path


async def test_every_slug_has_the_same_metadata_but_for_its_name_and_without_a_look_up(
    django_db_blocker: DjangoDbBlocker,
) -> None:
    events: list[dict[str, Any]] = []

    async def send(event: dict[str, Any]) -> None:
        events.append(event)

    for slug in SLUGS:
        for end in ("", "/"):
            path = f"{RESOURCE}/t/{slug}/mcp{end}"
            scope = {"method": "GET", "path": path, "headers": [(b"host", b"localhost")]}
            with django_db_blocker.block():
                await well_known(scope, nothing, send)
            start, body = events[-2:]
            assert start["status"] == 200
            assert orjson.loads(body["body"]) == {
                "resource": f"{ORIGIN}/t/{slug}/mcp",
                "authorization_servers": [ORIGIN],
                "scopes_supported": SCOPES,
                "bearer_methods_supported": ["header"],
            }
            assert (await get(path)).raw == body["body"]


async def nothing() -> dict[str, Any]:
    raise AssertionError("the request is not read")


async def test_all_addresses_are_those_that_clients_use(settings: Settings) -> None:
    async def origins(host: str) -> set[str]:
        server = (await get(SERVER, host=host)).last
        resource = (await get(f"{RESOURCE}/t/acme/mcp", host=host)).last
        (named,) = resource["authorization_servers"]
        ends = {"authorization": "authorize", "registration": "register", "revocation": "revoke"}
        return {
            server["issuer"],
            named,
            resource["resource"].removesuffix("/t/acme/mcp"),
            *(
                server[f"{name}_endpoint"].removesuffix(f"/{ends.get(name, name)}")
                for name in ("token", *ends)
            ),
        }

    assert await origins("localhost:8000") == {"http://localhost:8000"}
    assert await origins("LocalHost:80") == {"http://localhost"}
    assert await origins("[::1]:8000") == {"http://[::1]:8000"}
    settings.MCPHOST_HTTPS = True
    assert await origins("localhost:443") == {"https://localhost"}
    assert await origins("localhost:80") == {"https://localhost:80"}
    for public in ("https://mcp.example.com", "https://MCP.example.com:443/below/this"):
        settings.MCPHOST_PUBLIC_URL = public
        assert await origins("localhost:8000") == {"https://mcp.example.com"}


NOTHING = (
    "/.well-known/",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/t/acme/mcp",
    "/.well-known/jwks.json",
    RESOURCE,
    f"{RESOURCE}/",
    f"{RESOURCE}/t/acme",
    f"{RESOURCE}/t/acme/mcp//",
    f"{RESOURCE}/t/acme/mcp\n",
    f"{RESOURCE}/mcp",
    f"{RESOURCE}/authorize",
    f"{SERVER}/t/acme",
    f"{SERVER}/t/acme/mcp/x",
    f"{SERVER}/mcp",
    f"{SERVER}x",
    "/xwell-known/oauth-authorization-server",
    *(f"{well_known}/t/{name}/mcp" for well_known in (RESOURCE, SERVER) for name in NO_SLUGS),
    *(
        f"{prefix}{well_known}"
        for prefix in ("/t/acme", "/t/acme/mcp", "/t/no-such-tenant/mcp", "/mcp", "/admin", "/t")
        for well_known in (RESOURCE, SERVER, "/.well-known/openid-configuration")
    ),
)


@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
async def test_other_paths_that_clients_try_are_404_in_json(accept: str) -> None:
    for path in NOTHING:
        if path.startswith("/admin"):  # a page of the console, for everyone
            continue
        reply = await get(path, accept=accept)
        assert reply.status == 404, path
        assert reply.headers["content-type"] == "application/json"
        assert reply.last["error"] == "not_found"
        assert "oauth-authorization-server" in reply.last["error_description"]
        assert reply.headers["access-control-allow-origin"] == "*"


PATHS = (SERVER, f"{SERVER}/t/acme/mcp", f"{RESOURCE}/t/acme/mcp")


@pytest.mark.parametrize("path", PATHS)
async def test_a_document_may_be_read_by_any_page_and_cached_for_minutes(path: str) -> None:
    reply = await get(path, origin="https://anywhere.example")
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "public, max-age=300"
    head = await get(path, "HEAD")
    assert (head.status, head.headers, head.raw) == (200, reply.headers, b"")


@pytest.mark.parametrize("path", [*PATHS, "/.well-known/openid-configuration"])
async def test_a_preflight_is_answered_for_every_path(path: str) -> None:
    asked = {"access-control-request-headers": "mcp-protocol-version"}
    reply = await get(path, "OPTIONS", origin="https://anywhere.example", **asked)
    assert (reply.status, reply.raw) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "GET" in reply.headers["access-control-allow-methods"]
    assert "mcp-protocol-version" in reply.headers["access-control-allow-headers"]


@pytest.mark.parametrize("path", PATHS)
async def test_other_methods_and_hosts_are_refused(path: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        reply = await get(path, method)
        assert (reply.status, reply.last["error"]) == (405, "invalid_request")
        assert reply.headers["allow"] == "GET, HEAD, OPTIONS"
    for method in ("GET", "POST", "OPTIONS"):
        reply = await get(path, method, host="evil.example.com")
        assert reply.status == 403
        assert b"evil" not in reply.raw


async def _as_client(url: str) -> httpx2.Response:
    reply = await get(url.removeprefix(ORIGIN))
    return httpx2.Response(reply.status, headers=reply.headers, content=reply.raw)


@pytest.mark.requirement("auth.resource-metadata", "auth.server-metadata")
async def test_the_official_client_discovers_all_of_it(served: Cast) -> None:
    """In its order: from the challenge to the resource, and from there to the server."""
    for slug in ("acme", "no-such-tenant"):
        url = f"{ORIGIN}/t/{slug}/mcp"
        refused = await send(slug, request("tools/list"))
        response = httpx2.Response(refused.status, headers=refused.headers)
        assert utils.extract_scope_from_www_auth(response) == "mcp:list mcp:call"
        named = utils.extract_resource_metadata_from_www_auth(response)
        first, by_path, _root = utils.build_protected_resource_metadata_discovery_urls(named, url)
        assert first == by_path
        found = await utils.handle_protected_resource_response(await _as_client(first))
        assert found is not None
        assert str(found.resource) == url
        assert check_resource_allowed(url, str(found.resource))
        (server,) = map(str, found.authorization_servers)
        assert server == ORIGIN
        (address, _oidc) = utils.build_oauth_authorization_server_metadata_discovery_urls(
            server, url
        )
        proceeds, metadata = await utils.handle_auth_metadata_response(await _as_client(address))
        assert proceeds
        assert metadata is not None
        utils.validate_metadata_issuer(metadata, server)
        assert utils.should_use_client_metadata_url(metadata, "https://client.example/document")
        scopes = utils.get_client_metadata_scopes(None, found, metadata, ["refresh_token"])
        assert scopes == "mcp:list mcp:call"


async def test_clients_of_2025_03_26_find_the_server_at_the_root() -> None:
    """They do not ask for the metadata of the resource."""
    url = f"{ORIGIN}/t/acme/mcp"
    (address,) = utils.build_oauth_authorization_server_metadata_discovery_urls(None, url)
    _, metadata = await utils.handle_auth_metadata_response(await _as_client(address))
    assert metadata is not None
    assert str(metadata.issuer) == ORIGIN


async def test_who_asks_for_the_documents_of_a_tenant_is_in_its_connection_log(cast: Cast) -> None:
    for path in (SERVER, f"{SERVER}/t/acme/mcp", f"{RESOURCE}/t/acme/mcp", f"{RESOURCE}/t/x/mcp"):
        assert (await get(path)).status == 200
    await in_database(last_use.flush, timezone.now())
    (attempt,) = await in_database(attempts, cast.acme.id)
    assert {step.step for step in attempt.steps} == {
        StepKind.METADATA,
        StepKind.SERVER_METADATA,
    }
