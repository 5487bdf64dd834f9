"""Starts, disconnects and stops of a real server."""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.e2e import raw
from tests.e2e.processes import Server, free_port, manage, serving

ECHO = raw.call("echo", {"text": "still there"})
REFUSED = "a request's state was refused"
STEP = b"notifications/progress"


def countdown(start: int) -> dict[str, Any]:
    return raw.call("countdown", {"start": start}, progressToken="steps")


def test_log_lines_are_written_once(any_server: Server) -> None:
    """A state that cannot be opened gives one line, whatever the server has set up for its own log."""
    broken = raw.call("echo", {"text": "a"})
    broken["params"]["requestState"] = "mcps1.k1.AAAA"
    before = any_server.log.read_text().count(REFUSED)
    raw.post(any_server, broken, any_server.token)
    assert any_server.log.read_text().count(REFUSED) == before + 1


def test_a_server_survives_clients_that_disconnect_in_the_middle_of_a_stream(
    any_server: Server,
) -> None:
    for _ in range(10):
        with raw.streaming(any_server, countdown(10), STEP) as seen:
            assert seen.startswith(b"HTTP/1.1 200")
    reply = raw.post(any_server, ECHO, any_server.token)
    assert reply.status == 200
    assert reply.json["result"]["content"] == [{"type": "text", "text": "still there"}]


def test_a_restarted_server_keeps_its_tokens_and_passwords(home: Path) -> None:
    """It stops cleanly while streams are open; Ctrl-C gives no notice."""
    ways = {"MCPHOST_CONFORMANCE": "1", "MCPHOST_NOTICE_SECONDS": "3600"}
    with (
        ExitStack() as outlives,
        serving("uvicorn", home, signal.SIGINT, fresh=True, **ways) as first,
    ):
        token = first.token
        password = (home / "admin-password").read_text()
        message = raw.call("test_simple_text", {})
        assert raw.post(first, message, None, tenant="conformance").status == 200
        assert raw.post(first, message, "wrong", tenant="conformance").status == 401
        outlives.enter_context(raw.streaming(first, countdown(10), STEP))
    with ExitStack() as outlives, serving("uvicorn", home) as second:
        assert second.token == token
        assert (home / "admin-password").read_text() == password
        assert raw.post(second, ECHO, token).status == 200
        outlives.enter_context(raw.streaming(second, countdown(10), STEP))


def test_a_second_server_on_the_same_folder_is_refused(server: Server) -> None:
    taken = manage(server.home, "serve", env={"HOST": "127.0.0.1", "PORT": str(free_port())})
    assert taken.returncode != 0
    assert "DATABASE_URL" in taken.stderr
    assert "Traceback" not in taken.stderr
    assert raw.post(server, ECHO, server.token).status == 200
