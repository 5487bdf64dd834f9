"""Official clients with their experimental tasks, on 2025-11-25."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.asking import accept, wait_until
from tests.e2e.callers import command
from tests.e2e.processes import Server
from tests.e2e.talking import Talk, conversing
from tests.e2e.test_task_clients import Place, place

__all__ = ["place"]

REVISION = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
TASKS: Mapping[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
clients = pytest.mark.parametrize("name", ["mcp-tasks", "sdk-tasks"])
pytestmark = pytest.mark.usefixtures("node")


@contextmanager
def client(server: Server, folder: Path, name: str, own: str = "client") -> Iterator[Talk]:
    """A client in a session, which has read what the server and its tools can do with tasks."""
    place = folder / own
    place.mkdir()
    with conversing(command(name), place, url=server.url, token=server.token) as talk:
        met = talk.hear("met")
        assert met["revision"] == REVISION
        assert met["tasks"] == TASKS
        assert met["support"]["required"] == "required"
        assert met["support"]["paint"] == "optional"
        assert met["support"].get("never", "forbidden") == "forbidden"
        yield talk


def _answers(talk: Talk, message: str, **content: Any) -> str:
    """The client is asked this for a task, whose id is returned, and answers."""
    asked = talk.hear("asked")
    assert message in asked["message"]
    talk.say(accept(**content))
    id: str = asked["_meta"][RELATED]["taskId"]
    return id


def _text(result: Any) -> str:
    assert not result.get("isError"), result
    text: str = result["content"][0]["text"]
    return text


def _begun(talk: Talk, tool: str, **arguments: Any) -> str:
    talk.say({"begin": tool, "arguments": arguments})
    id: str = talk.hear("begun")
    return id


def _reaches(talk: Talk, id: str, status: str) -> None:
    """Wait until the task is so."""

    def is_so() -> bool:
        talk.say({"look": id})
        seen = talk.hear("seen")
        assert seen["status"] in ("working", status), seen
        return bool(seen["status"] == status)

    wait_until(is_so)


@clients
def test_it_drives_a_task_with_questions_to_its_end(
    place: Place, tmp_path: Path, name: str
) -> None:
    with place.life() as server, client(server, tmp_path, name) as talk:
        talk.say({"call": "paint_sized", "arguments": {"what": "the door"}})
        ids = {
            _answers(talk, "Which colour for the door?", colour="red"),
            _answers(talk, "How large?", size=3),
        }
        done = talk.hear("done")
        assert _text(done) == "the door is red, size 3"
        assert {done["_meta"][RELATED]["taskId"]} == ids
        talk.say({"list": True})
        assert set(talk.hear("listed")) == ids


@clients
def test_it_gets_results_and_failures(place: Place, tmp_path: Path, name: str) -> None:
    with place.life() as server, client(server, tmp_path, name) as talk:
        for tool in ("required", "always", "quick"):
            talk.say({"call": tool, "arguments": {"text": tool}})
            assert _text(talk.hear("done")) == tool
        talk.say({"plain": "never", "arguments": {"text": "hello"}})
        assert _text(talk.hear("done")) == "hello"
        talk.say({"plain": "always", "arguments": {"text": "hello"}})
        assert _text(talk.hear("done")) == "hello"
        talk.say({"begin": "never", "arguments": {"text": "hello"}})
        assert "cannot be called as a task" in talk.hear("raised")
        id = _begun(talk, "refuses")
        _reaches(talk, id, "failed")
        talk.say({"finish": id})
        done = talk.hear("done")
        assert done["isError"]
        assert "out of paper" in done["content"][0]["text"]
        talk.say({"finish": "A" * 32})
        assert "does not exist" in talk.hear("raised")


@clients
def test_it_cancels_a_task(place: Place, tmp_path: Path, name: str) -> None:
    with place.life() as server, client(server, tmp_path, name) as talk:
        id = _begun(talk, "hangs_in_a_process")
        wait_until(lambda: place.said() == ["began"])
        talk.say({"cancel": id})
        assert talk.hear("seen")["status"] == "cancelled"
        wait_until(lambda: place.said() == ["began", "cancelled"])
        talk.say({"finish": id})
        assert "cancelled" in talk.hear("raised")
        talk.say({"cancel": id})
        assert "cancelled" in talk.hear("raised")
        asks = _begun(talk, "paint")
        _reaches(talk, asks, "input_required")
        talk.say({"cancel": asks})
        assert talk.hear("seen")["status"] == "cancelled"


@clients
def test_it_comes_back_to_its_task_after_the_server_was_killed(
    place: Place, tmp_path: Path, name: str
) -> None:
    with (
        place.life(signal.SIGKILL) as server,
        client(server, tmp_path, name, "first") as talk,
    ):
        id = _begun(talk, "paint_sized", what="it")
        _reaches(talk, id, "input_required")
    with (
        place.life(signal.SIGKILL) as server,
        client(server, tmp_path, name, "second") as talk,
    ):
        talk.say({"list": True})
        assert talk.hear("listed") == [id]
        talk.say({"finish": id})
        assert _answers(talk, "Which colour for it?", colour="green") == id
        assert talk.hear("asked")["message"] == "How large?"
    with place.life() as server, client(server, tmp_path, name, "third") as talk:
        _reaches(talk, id, "input_required")
        talk.say({"finish": id})
        assert _answers(talk, "How large?", size=4) == id
        assert _text(talk.hear("done")) == "it is green, size 4"


@clients
def test_it_goes_on_in_its_session_after_the_server_was_killed(
    place: Place, tmp_path: Path, name: str
) -> None:
    with place.life(signal.SIGKILL) as server:
        talks = client(server, tmp_path, name)
        talk = talks.__enter__()
        id = _begun(talk, "paint", what="it")
        _reaches(talk, id, "input_required")
    with place.life():
        talk.say({"finish": id})
        assert _answers(talk, "Which colour for it?", colour="green") == id
        assert _text(talk.hear("done")) == "it is green"
        talks.__exit__(None, None, None)
