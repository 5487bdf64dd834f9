"""Two nodes behind nginx with the configuration in deploy/nginx."""

import json
import ssl
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPSConnection
from pathlib import Path

import psycopg
import pytest

from tests.e2e import nginx, raw
from tests.e2e.handmade_calls import wait_until
from tests.e2e.load import PATIENCE
from tests.e2e.nodes import Service
from tests.e2e.processes import Server

STEP = b"notifications/progress"


@pytest.fixture
def tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.fixture
def front(two_nodes: Service, tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "nginx"
    folder.mkdir()
    with nginx.fronting(folder, (two_nodes.first.port, two_nodes.second.port)) as port:
        yield replace(two_nodes.server, port=port)


def _ended(service: Service, source: str) -> int:
    """How many rounds of callers with this address were cancelled because they disconnected."""
    with psycopg.connect(service.settings["DATABASE_URL"]) as link:
        found = link.execute(
            "SELECT count(*) FROM audit_entry WHERE action = 'round.finished' AND source = %s "
            "AND outcome = 'cancelled' AND reason = 'the client disconnected'",
            [source],
        ).fetchone()
    assert found
    return int(found[0])


def test_nginx_does_not_buffer_streams_and_forwards_disconnects(
    two_nodes: Service, front: Server, tls: ssl.SSLContext
) -> None:
    claimed, seen = "192.0.2.7", b""
    before = _ended(two_nodes, "127.0.0.1")
    message = raw.call("countdown", {"start": 60, "seconds": 2}, progressToken="steps")
    fields = {**raw.headers(message, front.token), "X-Forwarded-For": claimed}
    line = HTTPSConnection("127.0.0.1", front.port, timeout=PATIENCE, context=tls)
    line.request("POST", "/t/demo/mcp", json.dumps(message), fields)
    response = line.getresponse()
    while STEP not in seen:
        piece = response.read1()
        assert piece, seen
        seen += piece
    line.close()
    response.close()
    wait_until(lambda: _ended(two_nodes, "127.0.0.1") == before + 1)
    assert _ended(two_nodes, claimed) == 0, "not what the client said"


def test_nginx_forwards_the_websocket_of_a_live_list(front: Server, tls: ssl.SSLContext) -> None:
    """Without a session it is refused by the console; without `Upgrade` it would be a page."""
    line = HTTPSConnection("127.0.0.1", front.port, timeout=PATIENCE, context=tls)
    fields = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": f"http://127.0.0.1:{front.port}",
    }
    line.request("GET", "/admin/calls/changes/?cursor=0", headers=fields)
    assert line.getresponse().status == 403
    line.close()


@pytest.mark.parametrize("shipped", ["nginx/mcphost.conf", "compose/nginx.conf.template"])
def test_nginx_accepts_the_shipped_configuration(shipped: str, tmp_path: Path) -> None:
    changes = {
        "/etc/nginx/mcphost-proxy.conf": str(nginx.SHIPPED / "mcphost-proxy.conf"),
        **(
            {"/etc/letsencrypt/live/mcp.example.com": str(tmp_path)}
            if shipped.startswith("nginx/")
            else {"/etc/nginx/tls": str(tmp_path), "${SERVER_NAME}": "localhost"}
        ),
    }
    text = (nginx.SHIPPED.parent / shipped).read_text()
    nginx.check(nginx.write(tmp_path, nginx.adapt(text, tmp_path, changes)))
