"""Attacks on signing in, over one process with SQLite and over two with PostgreSQL."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e import raw, raw_sessions
from tests.e2e.handmade_calls import at
from tests.e2e.nodes import Service
from tests.e2e.oauth_client import HandmadeClient
from tests.e2e.processes import Server
from tests.e2e.raw import Reply
from tests.e2e.test_older_clients import NEWEST
from tests.oauth import VERIFIER
from tests.observability.collectors import Collector

AT_ONCE = 20
CANARY = "canary-of-the-state"


@pytest.fixture(params=["server", "two_nodes"])
def entrance(request: pytest.FixtureRequest) -> Server:
    """One process with SQLite, or the proxy before two processes with PostgreSQL."""
    fixture: Server | Service = request.getfixturevalue(request.param)
    return fixture if isinstance(fixture, Server) else fixture.server


def connected(server: Server, **more: Any) -> HandmadeClient:
    client = HandmadeClient(server, **more)
    client.connect()
    return client


def at_once(request: Callable[[], Reply]) -> list[Reply]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [reply.result() for reply in [pool.submit(request) for _ in range(AT_ONCE)]]


def test_of_many_redemptions_at_once_one_succeeds_and_the_replays_end_the_connection(
    entrance: Server,
) -> None:
    client = HandmadeClient(entrance)
    for step in (client.discover, client.register, client.sign_in, client.consent):
        step()
    replies = at_once(client.send_code)
    assert sorted(reply.status for reply in replies) == [200, *[400] * (AT_ONCE - 1)]
    assert {reply.json["error"] for reply in replies if reply.status == 400} == {"invalid_grant"}
    (issued,) = [reply.json for reply in replies if reply.status == 200]
    client.tokens = issued
    assert client.call("echo", text="stolen").status == 401


def test_many_refreshes_at_once_have_one_successor(entrance: Server) -> None:
    client = connected(entrance)
    token = client.tokens["refresh_token"]
    replies = at_once(lambda: client.send_refresh(token))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.json["access_token"] for reply in replies}) == 1
    client.tokens = replies[0].json
    client.use()


def test_what_a_token_endpoint_refuses_is_in_words_and_in_json(entrance: Server) -> None:
    client = connected(entrance)
    refused = (
        client.send_code(),
        client.send_code(code="", code_verifier=""),
        client.send_refresh("x" * 60_000),
        client.send_refresh("\N{SNOWMAN}"),
        client.post_form("/token", {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}),
        client.post_form("/revoke", {"client_id": "nobody", "token": "x"}),
        raw.send(entrance, "POST", "/token", b"{}", Content_Type="application/json"),
        raw.send(entrance, "GET", "/token"),
    )
    for reply in refused:
        assert 400 <= reply.status < 500
        assert reply.headers["content-type"].startswith("application/json")
        assert set(reply.json) >= {"error"}


def test_secrets_of_a_sign_in_are_in_no_log_trace_record_or_row(
    server: Server, collector: Collector
) -> None:
    client = HandmadeClient(server, state=CANARY)
    for step in (client.discover, client.register, client.open, client.sign_in, client.consent):
        step()
    secrets = {client.code, VERIFIER}
    bad = client.send_code(code_verifier=VERIFIER.replace("verifier", "forgery0"))
    client.redeem()
    for _ in range(2):
        secrets |= {client.tokens["access_token"], client.tokens["refresh_token"]}
        client.refresh()
    secrets |= {client.tokens["access_token"], client.tokens["refresh_token"]}
    client.use()
    twice = client.send_code()
    gone = client.send_refresh(client.tokens["refresh_token"])
    ended = client.call("echo", text="ended")
    assert [reply.status for reply in (bad, twice, gone, ended)] == [400, 400, 400, 401]
    raw.send(server, "GET", f"/token?code={client.code}&code_verifier={VERIFIER}")
    collector.heard()
    places = {
        "the log": server.log.read_bytes(),
        "the output": server.output.read_bytes(),
        "the database": b"".join(file.read_bytes() for file in server.home.glob("db.sqlite3*")),
        "the traces": b"".join(request.SerializeToString() for request in collector.requests),
        "errors": b"".join(reply.body for reply in (bad, twice, gone, ended)),
    }
    found = [
        (name, secret)
        for name, text in places.items()
        for secret in secrets
        if secret.encode() in text
    ]
    assert found == []
    assert CANARY.encode() not in places["the log"] + places["the output"] + places["the traces"]


def test_a_session_goes_on_with_the_next_access_token_at_the_other_process(
    two_nodes: Service,
) -> None:
    client = connected(two_nodes.server)
    first = replace(at(two_nodes, two_nodes.first), access_token=client.tokens["access_token"])
    session = raw_sessions.begin(first, NEWEST, elicitation={})
    client.refresh()
    renewed = replace(session.server, access_token=client.tokens["access_token"])
    session = replace(session, server=replace(renewed, port=two_nodes.second.port))
    assert session.ask("tools/list")["tools"]


def test_clients_of_a_tenant_that_is_closed_in_the_middle_get_nothing(two_nodes: Service) -> None:
    asking, redeeming = HandmadeClient(two_nodes.server), HandmadeClient(two_nodes.server)
    for client in (asking, redeeming):
        for step in (client.discover, client.register, client.sign_in, client.read_page):
            step()
    redeeming.consent()
    using = connected(two_nodes.server)
    assert asking.person is not None
    _close(two_nodes, closed=True)
    try:
        asking.person.admin.post(asking.page, _allow="1")
        assert "error=invalid_target" in asking.person.admin.location
        refused = (redeeming.send_code(), using.send_refresh(using.tokens["refresh_token"]))
        assert [reply.status for reply in refused] == [400, 400]
        assert [reply.json["error"] for reply in refused] == ["invalid_grant"] * 2
        for process in (two_nodes.first, two_nodes.second):
            server = at(two_nodes, process)
            call = raw.call("echo", {"text": "closed"})
            assert raw.post(server, call, using.tokens["access_token"]).status == 401
    finally:
        _close(two_nodes, closed=False)


def _close(service: Service, *, closed: bool) -> None:
    """Close the demo in the database and announce it, or open it again."""
    program = f"""
from django.db import transaction
from django.utils import timezone
from mcphost.feed.services import announce
from mcphost.tenants.models import Tenant
with transaction.atomic():
    tenant = Tenant.objects.get(slug="demo")
    tenant.closed_at = timezone.now() if {closed} else None
    tenant.save()
    announce("tenant", tenant=tenant.pk, object_id=tenant.slug)
"""
    service.manage("shell", "-c", program)
