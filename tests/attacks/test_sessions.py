"""Sessions and their streams: nothing of one is reached with the id, the events or the questions of another.

Forged, foreign and ended ids, streams of others, answers to questions of others, over real servers.
"""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e import raw
from tests.e2e.asking import accept
from tests.e2e.processes import OWN, Server, manage
from tests.e2e.raw_sessions import Session, begin, calling

REVISION = "2025-11-25"
FORMS = {"elicitation": {"form": {}}}
DEPLOY = calling("deploy", service="shop", version="v2")


@pytest.fixture
def other(attacked: Server, tmp_path: Path) -> Server:
    """The server as a caller with another token of the same person reaches it."""
    command = ("token", "issue", "--tenant", "demo", "--owner", "admin", "--name", "another")
    done = manage(attacked.home, *command, env=database_of(attacked))
    assert done.returncode == 0, done.stderr
    found = re.search(r"mcph_\w+", done.stdout)
    assert found, done.stdout
    home = tmp_path / "other"
    home.mkdir()
    (home / "demo-token").write_text(found[0])
    return replace(attacked, home=home)


def database_of(server: Server) -> dict[str, str]:
    """The DATABASE_URL and the secrets that the server was started with, if any."""
    environment = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
    found = dict(os.fsdecode(line).partition("=")[::2] for line in environment if line)
    return {name: found[name] for name in OWN if found.get(name)}


PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


def test_a_foreign_forged_or_ended_id_is_answered_like_an_unknown_one(
    attacked: Server, other: Server
) -> None:
    mine = begin(attacked, REVISION)
    gone = begin(attacked, REVISION)
    assert gone.send(verb="DELETE").status in (200, 204)
    cases = {
        "foreign": Session(other, REVISION, mine.id),
        "changed": replace(mine, id=mine.id[:-2] + ("AA" if mine.id[-2:] != "AA" else "BB")),
        "cut": replace(mine, id=mine.id[:-1]),
        "made up": replace(mine, id="00000000-0000-4000-8000-000000000000"),
        "huge": replace(mine, id="x" * 5000),
        "ended": gone,
    }
    replies = {
        (name, verb): each.send(PING if verb == "POST" else None, verb)
        for name, each in cases.items()
        for verb in ("POST", "GET", "DELETE")
    }
    assert {reply.status for reply in replies.values()} == {404}
    for verb in ("POST", "GET", "DELETE"):
        assert len({reply.body for (_, each), reply in replies.items() if each == verb}) == 1
    assert mine.ask("ping", 8) == {}


def test_the_events_of_another_session_are_shown_to_no_other(
    attacked: Server, other: Server
) -> None:
    mine = begin(attacked, REVISION, **FORMS)
    with mine.stream(DEPLOY) as events:
        question = events.message()
        assert question["method"] == "elicitation/create"
        last = events.last_id
    for stranger in (begin(attacked, REVISION), begin(other, REVISION)):
        shown = raw.exchange(
            stranger.server,
            "GET",
            "/t/demo/mcp",
            b"",
            stranger.headers(Last_Event_ID=last),
        )
        assert shown.status in (400, 404), shown
        assert b"elicitation" not in shown.body


def test_a_question_is_answered_by_its_own_session_only(attacked: Server, other: Server) -> None:
    mine = begin(attacked, REVISION, **FORMS)
    with mine.stream(DEPLOY) as events:
        question = events.message()
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": accept(deploy=True)}
        for stranger in (begin(attacked, REVISION), begin(other, REVISION)):
            assert (stranger.send(answer).status, stranger.send(answer).body) == (202, b"")
        no = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        assert mine.send(no).status == 202
        assert mine.send(answer).status == 202  # late: taken note of, and dropped
        ended = events.message()
    assert "declined" in ended["result"]["content"][0]["text"]


def test_another_session_calls_nothing_off(attacked: Server, other: Server) -> None:
    mine = begin(attacked, REVISION, **FORMS)
    with mine.stream(DEPLOY) as events:
        question = events.message()
        for stranger in (begin(attacked, REVISION), begin(other, REVISION)):
            stranger.notify("notifications/cancelled", requestId=DEPLOY["id"], reason="mine now")
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": accept(deploy=False)}
        assert mine.send(answer).status == 202
        assert "stays as it is" in events.message()["result"]["content"][0]["text"]
