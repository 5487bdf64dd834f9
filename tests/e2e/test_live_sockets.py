"""Live lists over each server, without a browser."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.e2e import raw
from tests.e2e.admin import Admin
from tests.e2e.processes import Server, serving

PATIENCE = 30


def opened(server: Server, cookie: str, origin: str = "") -> ClientConnection:
    address = f"ws://{urlsplit(server.base).netloc}/admin/t/demo/calls/changes/?cursor=0"
    headers = {"Cookie": cookie, "Origin": origin or server.base}
    return connect(address, additional_headers=headers, open_timeout=PATIENCE, proxy=None)


@pytest.mark.parametrize("kind", ["uvicorn", "daphne"])
def test_a_call_reaches_the_socket_of_a_signed_in_user(kind: str, tmp_path: Path) -> None:
    with serving(kind, tmp_path / "home") as server:
        admin = Admin(server.port, (server.home / "admin-password").read_text().strip())
        with pytest.raises(InvalidStatus) as refused:
            opened(server, "mcphost_session=unknown00")
        assert refused.value.response.status_code == 403
        with pytest.raises(InvalidStatus):
            opened(server, admin.cookie, "http://evil.example")
        with opened(server, admin.cookie) as socket:
            json.loads(socket.recv(PATIENCE))
            reply = raw.post(server, raw.call("echo", {"text": "a"}), server.token)
            assert reply.status == 200
            while "rows" not in (told := json.loads(socket.recv(PATIENCE))):
                pass
        assert [">echo<" in row["html"] for row in told["rows"]] == [True]
