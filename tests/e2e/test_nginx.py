"""Two nodes behind nginx with the configuration in deploy/nginx."""

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.client import HTTPSConnection
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from tests.e2e import backing, nginx, raw
from tests.e2e.load import CALLS, PATIENCE, loading
from tests.e2e.nodes import Node
from tests.e2e.processes import Server, manage

STEP = b"notifications/progress"


class Service(NamedTuple):
    """The nodes, nginx as a client sees it, and their database."""

    nodes: tuple[Node, Node]
    front: Server
    database: str


@pytest.fixture
def tls() -> ssl.SSLContext:
    """Believes any certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    """nginx does not ask `/readyz`: the notice is the time in which it lets go of connections."""
    nginx.program()
    home = tmp_path / "home"
    with backing.database() as database, ExitStack() as lives:
        shared = {
            "DATABASE_URL": database,
            "MCPHOST_NOTICE_SECONDS": "1",
            "MCPHOST_PROXIES": "127.0.0.1",
            "MCPHOST_HTTPS": "1",
        }
        made = manage(home, "init", "--demo", env=shared)
        assert made.returncode == 0, made.stderr
        nodes = Node(home, **shared), Node(home, **shared)
        for node in nodes:
            seen = node.start()
            lives.callback(node.stop)
        folder = tmp_path / "nginx"
        folder.mkdir()
        ports = nodes[0].port, nodes[1].port
        port = lives.enter_context(nginx.fronting(folder, ports))
        yield Service(nodes, replace(seen, port=port), database)


def test_a_rolling_restart_behind_nginx_fails_not_one_call(
    service: Service, tls: ssl.SSLContext
) -> None:
    with loading(service.front, tls) as load:
        for node in service.nodes:
            load.has_gone_on()
            node.stop()
            load.has_gone_on()
            node.start()
            load.has_gone_on()
    assert load.failures == []
    assert set(load.answers) == {name for name, _ in CALLS}


def test_a_stream_leaves_nginx_as_it_comes_and_a_hang_up_arrives(
    service: Service, tls: ssl.SSLContext
) -> None:
    message = raw.call("countdown", {"start": 60, "seconds": 2}, progressToken="steps")
    fields = {**raw.headers(message, service.front.token), "X-Forwarded-For": "192.0.2.7"}
    line = HTTPSConnection("127.0.0.1", service.front.port, timeout=PATIENCE, context=tls)
    line.request("POST", "/t/demo/mcp", json.dumps(message), fields)
    response = line.getresponse()
    seen = b""
    while STEP not in seen:
        piece = response.read1()
        assert piece, seen
        seen += piece
    line.close()
    response.close()
    for node in service.nodes:
        node.stop()  # it drains: a call that nobody hung up on would be cancelled by that
    with psycopg.connect(service.database) as link:
        found = link.execute(
            "SELECT outcome, reason, source FROM audit_entry WHERE action = 'round.finished'"
        ).fetchall()
    assert found == [("cancelled", "the client disconnected", "127.0.0.1")], (
        "not what the client said"
    )


def test_a_socket_of_a_live_list_passes_nginx(service: Service, tls: ssl.SSLContext) -> None:
    """Without a session it is refused by the console; without `Upgrade` it would be a page."""
    line = HTTPSConnection("127.0.0.1", service.front.port, timeout=PATIENCE, context=tls)
    fields = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": f"https://127.0.0.1:{service.front.port}",
    }
    line.request("GET", "/admin/calls/changes/?cursor=0", headers=fields)
    assert line.getresponse().status == 403
    line.close()


@pytest.mark.parametrize("shipped", ["nginx/mcphost.conf", "compose/nginx.conf.template"])
def test_nginx_accepts_what_we_ship(shipped: str, tmp_path: Path) -> None:
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
