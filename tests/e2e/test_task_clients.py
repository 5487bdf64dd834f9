"""Real clients drive calls that become tasks, over SQLite; their tasks outlive the server."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.callers import command
from tests.e2e.handmade_calls import wait_until
from tests.e2e.node_client import FOLDER
from tests.e2e.processes import ROOT
from tests.e2e.task_clients import (
    CLIENTS,
    OF_SESSIONS,
    RELATED,
    Place,
    TaskClient,
    client,
    placed,
)

FASTMCP = CLIENTS[0]
PAGE = (ROOT / "docs" / "tasks.md").read_text()
PROGRAM = re.compile(r"^```(python|javascript)\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTED = ("fastmcp-tasks", "mcp-tasks", "sdk-tasks")
"""The clients of the page's programs, in its order."""
SECONDS = 60


@pytest.fixture(scope="module")
def tasks_home(node: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with placed(tmp_path_factory.mktemp("tasks")) as made:
        yield made


@pytest.fixture
def place(tasks_home: Place) -> Place:
    tasks_home.begun()
    return tasks_home


@pytest.fixture
def fastmcp(place: Place, tmp_path: Path) -> Iterator[TaskClient]:
    with client(FASTMCP, place.server, tmp_path / "client") as one:
        yield one


@pytest.fixture(params=OF_SESSIONS)
def of_session(
    request: pytest.FixtureRequest, place: Place, tmp_path: Path
) -> Iterator[TaskClient]:
    with client(request.param, place.server, tmp_path / "client") as one:
        yield one


def test_fastmcp_runs_tasks_to_completion(fastmcp: TaskClient) -> None:
    talk = fastmcp.talk
    talk.say({"call": "paint_sized", "arguments": {"what": "the door"}})
    fastmcp.answers("Which colour", colour="red")
    fastmcp.answers("How large?", size=3)
    assert fastmcp.text() == "the door is red, size 3"
    talk.say({"call": "defers", "arguments": {}})
    fastmcp.answers("Which colour", colour="blue")
    assert fastmcp.text() == "blue"
    talk.say({"call": "refuses", "arguments": {}})
    assert "out of paper" in talk.hear("raised")


def test_fastmcp_cancels_a_task(place: Place, fastmcp: TaskClient) -> None:
    id = fastmcp.begin("hangs_in_a_process")
    wait_until(lambda: place.said() == ["began"])
    fastmcp.talk.say({"cancel": id})
    assert fastmcp.talk.hear("seen")["status"] == "cancelled"
    wait_until(lambda: place.said() == ["began", "cancelled"])
    fastmcp.finish(id, "hangs_in_a_process")
    assert "cancelled" in fastmcp.talk.hear("raised")


def test_a_session_client_completes_a_task_with_input_requests(
    of_session: TaskClient,
) -> None:
    talk = of_session.talk
    talk.say({"call": "paint_sized", "arguments": {"what": "the door"}})
    ids = {
        of_session.answers("Which colour for the door?", colour="red"),
        of_session.answers("How large?", size=3),
    }
    done = talk.hear("done")
    assert done["content"][0]["text"] == "the door is red, size 3"
    assert {done["_meta"][RELATED]["taskId"]} == ids
    talk.say({"list": True})
    assert ids <= set(talk.hear("listed"))


def test_a_session_client_cancels_a_task(place: Place, of_session: TaskClient) -> None:
    talk = of_session.talk
    id = of_session.begin("hangs_in_a_process")
    wait_until(lambda: place.said() == ["began"])
    talk.say({"cancel": id})
    assert talk.hear("seen")["status"] == "cancelled"
    wait_until(lambda: place.said() == ["began", "cancelled"])
    of_session.finish(id, "hangs_in_a_process")
    assert "cancelled" in talk.hear("raised")


@pytest.mark.parametrize("number", range(len(DOCUMENTED)), ids=DOCUMENTED)
def test_a_client_program_from_the_tasks_page_gets_the_result_of_its_task(
    place: Place, tmp_path: Path, number: int
) -> None:
    programs = PROGRAM.findall(PAGE)
    assert len(programs) == len(DOCUMENTED)
    language, text = programs[number]
    folder = tmp_path if language == "python" else FOLDER  # Node looks for packages beside it
    file = folder / f"documented{'.py' if language == 'python' else '.mjs'}"
    assert "https://mcp.example.com/t/acme/mcp" in text
    text = text.replace("https://mcp.example.com/t/acme/mcp", place.server.url)
    file.write_text(text.replace("TOKEN", place.server.token))
    run = [command(DOCUMENTED[number])[0], str(file)]
    done = subprocess.run(
        run, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder
    )
    assert (done.returncode, done.stdout) == (0, "the door is red\n"), done.stderr


class Lives:
    """Clients, each of whose tasks goes on in the next life of the server."""

    def __init__(self, place: Place, folder: Path, ends: ExitStack) -> None:
        self._place, self._folder, self._ends = place, folder, ends
        self._tasks: dict[str, str] = {}
        self._in_sessions: dict[TaskClient, str] = {}
        self._work = ""
        self._number = 0

    def _client(self, name: str, ends: ExitStack) -> TaskClient:
        self._number += 1
        folder = self._folder / f"{name}-{self._number}"
        return ends.enter_context(client(name, self._place.server, folder))

    def begin(self) -> None:
        """A task of each client asks; clients of sessions stay connected to another one."""
        with ExitStack() as ends:
            for name in CLIENTS:
                one = self._client(name, ends)
                self._tasks[name] = one.begin("paint_sized", what="it")
                one.waits(self._tasks[name], "colour")
        for name in OF_SESSIONS:
            one = self._client(name, self._ends)
            self._in_sessions[one] = one.begin("paint", what="it")
            one.waits(self._in_sessions[one])

    def begin_to_work(self) -> None:
        before = self._place.said()
        self._place.pause.touch()
        with ExitStack() as ends:
            self._work = self._client(FASTMCP, ends).begin("works_in_a_process")
            wait_until(lambda: self._place.said() == [*before, "one"])

    def work_on(self) -> None:
        before = self._place.said()
        with ExitStack() as ends:
            one = self._client(FASTMCP, ends)
            assert one.look(self._work)["status"] == "working"
            self._place.pause.unlink()
            one.finish(self._work, "works_in_a_process")
            assert one.text() == "worked"
        assert self._place.said() == [*before, "two"]

    def go_on_in_sessions(self) -> None:
        for one, id in self._in_sessions.items():
            one.finish(id, "paint")
            one.answers("Which colour for it?", id, colour="green")
            assert one.text() == "it is green"

    def come_back(self) -> None:
        with ExitStack() as ends:
            for name, id in self._tasks.items():
                one = self._client(name, ends)
                one.waits(id, "colour")
                if name in OF_SESSIONS:
                    one.talk.say({"list": True})
                    assert id in one.talk.hear("listed")
                one.finish(id, "paint_sized")
                one.answers("Which colour for it?", id, colour="green")
                one.is_asked("How large?", id)

    def end(self) -> None:
        with ExitStack() as ends:
            for name, id in self._tasks.items():
                one = self._client(name, ends)
                one.waits(id, "size")
                one.finish(id, "paint_sized")
                one.answers("How large?", id, size=4)
                assert one.text() == "it is green, size 4"


def test_tasks_continue_in_the_next_server_process_after_a_kill_or_a_stop(
    place: Place, tmp_path: Path
) -> None:
    with ExitStack() as ends:
        lives = Lives(place, tmp_path, ends)
        lives.begin()
        lives.begin_to_work()
        place.node.kill()
        place.node.start()
        lives.go_on_in_sessions()
        lives.work_on()
        lives.come_back()
        lives.begin_to_work()
        place.node.stop()
        place.node.start()
        lives.work_on()
        lives.end()
