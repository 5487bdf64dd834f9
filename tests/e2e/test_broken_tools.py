"""A server whose folder of tools has every mistake that we know, beside a tool that works."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e import raw, raw_sessions
from tests.e2e.processes import Server, manage, serving
from tests.kinds.python.broken_files import GOOD, write_all

SESSIONS = "2025-11-25"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, int]:
    """The line of each file that is to be named, by its path. One file is never imported to its end."""
    folder = tmp_path_factory.mktemp("broken") / "tools"
    folder.mkdir()
    lines = write_all(folder, "locks")
    (folder / "demo.py").write_text(GOOD)
    return {str(folder / f"{name}.py"): line for name, line in lines.items()}


@pytest.fixture(scope="module")
def tools(lines: Mapping[str, int]) -> Mapping[str, str]:
    """The setting for the folder."""
    return {"MCPHOST_TOOLS_PATH": str(Path(next(iter(lines))).parent)}


@pytest.fixture(scope="module")
def broken(tools: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server as `make up` runs it. Leaving asserts that it ends in time, with status 0."""
    with serving("uvicorn", tmp_path_factory.mktemp("up") / "home", **tools) as started:
        yield started


def places(lines: Mapping[str, int]) -> set[str]:
    return {f"tools/{Path(path).name}:{line}: " for path, line in lines.items()}


def test_what_works_is_listed_and_called_in_both_eras(broken: Server) -> None:
    listed = raw.post(broken, raw.request("tools/list", {}), broken.token).message["result"]
    called = raw.post(broken, raw.call("good", {"text": "now"}), broken.token).message["result"]
    session = raw_sessions.begin(broken, SESSIONS)
    for tools, result in (
        (listed["tools"], called),
        (
            session.ask("tools/list")["tools"],
            session.ask("tools/call", name="good", arguments={"text": "now"}),
        ),
    ):
        assert [tool["name"] for tool in tools] == ["good"]
        assert result["content"] == [{"type": "text", "text": "now"}]


def test_the_log_names_each_mistake_once_with_its_place(
    broken: Server, lines: Mapping[str, int]
) -> None:
    log = broken.log.read_text()
    for place in places(lines):
        assert log.count(f"not served: {place}") == 1, place


def test_the_check_names_each_mistake_with_its_place(
    broken: Server, tools: Mapping[str, str], lines: Mapping[str, int]
) -> None:
    checked = manage(broken.home, "check", env=tools)
    assert checked.returncode == 0, checked.stderr
    assert {place for place in places(lines) if place not in checked.stderr} == set()
