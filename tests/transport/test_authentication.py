"""Authentication (spec: basic/authorization; RFC 6750)."""

import asyncio
import secrets
import threading
from contextlib import AsyncExitStack

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from mcphost.audit import last_use
from mcphost.catalogue import selectors as catalogue
from mcphost.identity import selectors, tokens
from mcphost.identity import services as identity
from mcphost.identity.oauth.connection_log import StepKind, attempts
from mcphost.serving.database import THREADS, in_database
from mcphost.tenants import services as tenants
from mcphost.tenants.roles import Audience
from mcphost.tenants.selectors import forget_all, public_tenant
from tests.cast import ACTOR, Cast
from tests.mcp import Reply, ask, begun, call, request, send

pytestmark = pytest.mark.django_db(transaction=True)

SLUGS = ("acme", "no-such-tenant", "closed-one", "a" * 40)
NO_SLUGS = ("UPPER", "a%20b", "a" * 200, "démo", 'a"b', "-a", "a,b")
METADATA = "http://localhost/.well-known/oauth-protected-resource"


def _public_face(reply: Reply, slug: str = "") -> str:
    """The whole response, without the slug in the address of the metadata."""
    headers = dict(reply.headers)
    challenge = headers["www-authenticate"]
    headers["www-authenticate"] = challenge.replace(f"/t/{slug}/mcp", "/t/<slug>/mcp")
    return str((reply.status, headers, reply.raw))


async def _close_one() -> None:
    made = await in_database(tenants.create_tenant, "closed-one", actor=ACTOR)
    await in_database(tenants.close_tenant, made.id, actor=ACTOR)


@pytest.mark.requirement("auth.challenge")
@pytest.mark.requirement("http.authentication")
async def test_without_a_token_every_non_public_slug_gets_the_same_response(served: Cast) -> None:
    await _close_one()
    replies = [await send(slug, request("tools/list")) for slug in SLUGS]
    assert {reply.status for reply in replies} == {401}
    assert len({_public_face(reply, slug) for slug, reply in zip(SLUGS, replies, strict=True)}) == 1
    assert replies[0].headers["www-authenticate"] == (
        'Bearer realm="mcphost", scope="mcp:list mcp:call", '
        f'resource_metadata="{METADATA}/t/acme/mcp"'
    )
    assert "sign in with a browser" in replies[0].error["message"]
    assert "Connect" in replies[0].error["message"]
    assert replies[0].check().last["id"] is None
    assert (await send("commons", request("tools/list"))).status == 200


async def test_what_cannot_be_a_slug_gets_the_same_response_without_metadata(served: Cast) -> None:
    for token in (None, served.owner.mcp_token):
        replies = [await send(name, request("tools/list"), token) for name in NO_SLUGS]
        assert {reply.status for reply in replies} == {401}
        assert len({_public_face(reply) for reply in replies}) == 1
        assert replies[0].headers["www-authenticate"].endswith('scope="mcp:list mcp:call"')


async def test_the_challenge_names_the_address_that_clients_use(
    served: Cast, settings: Settings
) -> None:
    async def challenge(host: str) -> str:
        reply = await send("acme", request("tools/list"), headers={"host": host})
        return reply.headers["www-authenticate"].rpartition(", ")[2]

    path = '/.well-known/oauth-protected-resource/t/acme/mcp"'
    assert await challenge("LOCALHOST:8000") == f'resource_metadata="http://localhost:8000{path}'
    assert await challenge("[::1]:80") == f'resource_metadata="http://[::1]{path}'
    settings.MCPHOST_HTTPS = True
    assert await challenge("localhost:443") == f'resource_metadata="https://localhost{path}'
    settings.MCPHOST_PUBLIC_URL = "https://mcp.example.com:8443/below"
    assert await challenge("localhost") == f'resource_metadata="https://mcp.example.com:8443{path}'


@pytest.mark.requirement("auth.audience")
@pytest.mark.requirement("auth.invalid-token")
async def test_with_a_foreign_token_every_slug_gets_the_same_response(served: Cast) -> None:
    await _close_one()
    stranger = served.stranger.mcp_token
    for token in (stranger, stranger[:-1] + "!", "nonsense", served.owner.api_token):
        slugs = (*SLUGS, "commons")
        replies = [await send(slug, request("tools/list"), token) for slug in slugs]
        assert {reply.status for reply in replies} == {401}
        faces = {_public_face(reply, slug) for slug, reply in zip(slugs, replies, strict=True)}
        assert len(faces) == 1
        assert 'error="invalid_token"' in replies[0].headers["www-authenticate"]
        assert f'"{METADATA}/t/acme/mcp"' in replies[0].headers["www-authenticate"]


async def test_unknown_closed_and_private_tenants_cost_the_same_queries(served: Cast) -> None:
    await _close_one()
    stranger = served.stranger.mcp_token

    def queries(slug: str, token: str | None) -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            _forgetful_look_up(slug, token)
        return [query["sql"] for query in captured.captured_queries]

    def both(slug: str) -> list[list[str]]:
        return [queries(slug, None), queries(slug, stranger)]

    seen = [await in_database(both, slug) for slug in ("acme", "no-such-tenant", "closed-one")]
    assert seen[0] == seen[1] == seen[2]


def _forgetful_look_up(slug: str, token: str | None) -> None:
    forget_all()
    selectors.forget_all()
    if token is None:
        assert public_tenant(slug) is None
    else:
        assert selectors.load(token, Audience.MCP, slug, timezone.now()) is None


@pytest.mark.requirement("auth.every-request")
async def test_a_revoked_token_is_refused_at_the_next_request(served: Cast) -> None:
    token = served.member.mcp_token
    assert (await call("acme", "echo", {"text": "a"}, token)).status == 200
    await in_database(identity.revoke, served.acme.id, token.split("_")[1], actor=ACTOR)
    assert (await send("acme", request("tools/list"), token)).status == 401


async def test_a_token_is_refused_after_its_owners_membership_ends(served: Cast) -> None:
    token = served.member.mcp_token
    assert (await ask("acme", "tools/list", token=token)).status == 200
    await in_database(tenants.remove_member, served.acme.id, served.member.user, actor=ACTOR)
    assert (await send("acme", request("tools/list"), token)).status == 401


async def test_other_credentials_than_a_bearer_token_are_refused(served: Cast) -> None:
    token = served.owner.mcp_token
    for headers in (
        {"authorization": f"Basic {token}"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {token} {token}"},
        {"authorization": "", "cookie": f"sessionid={token}"},
    ):
        assert (await send("acme", request("tools/list"), token, headers)).status == 401


async def test_known_callers_do_not_wait_behind_look_ups_of_forged_tokens(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = served.owner.mcp_token
    assert (await call("acme", "echo", {"text": "a"}, owner)).text == "a"
    release = threading.Event()

    def slowly(*_: object) -> None:
        release.wait()

    monkeypatch.setattr("mcphost.serving.lookups.identity.load", slowly)
    async with AsyncExitStack() as stack:
        stack.callback(release.set)
        for _ in range(2 * THREADS):
            made_up = begun("acme", request("tools/list"), tokens.new(secrets.token_bytes))
            await stack.enter_async_context(made_up)
        await asyncio.sleep(0)  # all look-ups have started
        catalogue.forget(served.acme.id)
        assert (await call("acme", "echo", {"text": "b"}, owner)).text == "b"
        release.set()


async def test_refused_requests_are_in_the_connection_log(served: Cast) -> None:
    for token in (None, "nonsense", tokens.new(secrets.token_bytes), served.stranger.mcp_token):
        assert (await send("acme", request("tools/list"), token)).status == 401
    await in_database(last_use.flush, timezone.now())
    (attempt,) = await in_database(attempts, served.acme.id)
    steps = {StepKind.CHALLENGED, StepKind.MALFORMED, StepKind.UNKNOWN_TOKEN}
    assert {step.step for step in attempt.steps} == steps
    (attempt,) = await in_database(attempts, served.globex.id)
    assert (attempt.person, attempt.last.step) == ("stranger", StepKind.ELSEWHERE)
