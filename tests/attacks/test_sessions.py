"""No other session can answer the input requests of a session call or cancel it, over real servers.

Forged, foreign and ended ids, and the events of others, are in `tests/transport/legacy`.
"""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.handmade_calls import accept
from tests.e2e.processes import OWN, Server, manage
from tests.e2e.raw_sessions import begin, calling

REVISION = "2025-11-25"
FORMS = {"elicitation": {"form": {}}}
DEPLOY = calling("deploy", service="shop", version="v2")


@pytest.fixture(scope="module")
def other(sqlite_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Server:
    command = ("token", "issue", "--tenant", "demo", "--owner", "admin", "--name", "another")
    done = manage(sqlite_server.home, *command, env=database_of(sqlite_server))
    assert done.returncode == 0, done.stderr
    found = re.search(r"mcph_\w+", done.stdout)
    assert found, done.stdout
    home = tmp_path_factory.mktemp("other")
    (home / "demo-token").write_text(found[0])
    return replace(sqlite_server, home=home)


def database_of(server: Server) -> dict[str, str]:
    environment = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
    found = dict(os.fsdecode(line).partition("=")[::2] for line in environment if line)
    return {name: found[name] for name in OWN if found.get(name)}


def test_an_input_request_is_answered_by_its_own_session_only(
    sqlite_server: Server, other: Server
) -> None:
    mine = begin(sqlite_server, REVISION, **FORMS)
    with mine.stream(DEPLOY) as events:
        question = events.message()
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": accept(deploy=True)}
        for stranger in (begin(sqlite_server, REVISION), begin(other, REVISION)):
            assert (stranger.send(answer).status, stranger.send(answer).body) == (202, b"")
        no = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert mine.send(no).status == 202
        assert mine.send(answer).status == 202  # late: taken note of, and dropped
        ended = events.message()
    assert "declined" in ended["result"]["content"][0]["text"]


def test_another_session_cannot_cancel_a_call(sqlite_server: Server, other: Server) -> None:
    mine = begin(sqlite_server, REVISION, **FORMS)
    with mine.stream(DEPLOY) as events:
        question = events.message()
        for stranger in (begin(sqlite_server, REVISION), begin(other, REVISION)):
            stranger.notify("notifications/cancelled", requestId=DEPLOY["id"], reason="mine now")
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": accept(deploy=False)}
        assert mine.send(answer).status == 202
        assert "stays as it is" in events.message()["result"]["content"][0]["text"]
