"""Live lists over each server, without a browser."""

import json
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.e2e import raw
from tests.e2e.admin import Admin
from tests.e2e.processes import Server

PATIENCE = 30
CHANGES = "/admin/t/demo/calls/changes/"


@pytest.fixture(params=["server", "daphne"])
def either(request: pytest.FixtureRequest) -> Server:
    """`serve`, and Daphne."""
    started: Server = request.getfixturevalue(request.param)
    return started


def opened(server: Server, query: str, cookie: str, origin: str = "") -> ClientConnection:
    address = f"ws://{urlsplit(server.base).netloc}{CHANGES}?{query}"
    headers = {"Cookie": cookie, "Origin": origin or server.base}
    return connect(address, additional_headers=headers, open_timeout=PATIENCE, proxy=None)


def test_a_call_reaches_the_live_list_socket_of_a_signed_in_user(either: Server) -> None:
    server = either
    admin = Admin(server.port, (server.home / "admin-password").read_text().strip())
    now = json.loads(admin.get(f"{CHANGES}?cursor=0&tool=add"))["cursor"]
    query = f"cursor={now}&tool=add"
    with pytest.raises(InvalidStatus) as refused:
        opened(server, query, "mcphost_session=unknown00")
    assert refused.value.response.status_code == 403
    with pytest.raises(InvalidStatus):
        opened(server, query, admin.cookie, "http://evil.example")
    with opened(server, query, admin.cookie) as socket:
        json.loads(socket.recv(PATIENCE))
        reply = raw.post(server, raw.call("add", {"a": 1, "b": 2}), server.token)
        assert reply.status == 200
        while "rows" not in (told := json.loads(socket.recv(PATIENCE))):
            pass
    assert [">add<" in row["html"] for row in told["rows"]] == [True]
