"""`manage.py up` says what became of a file of tools that was saved."""

from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest
from django.test import override_settings

from mcphost.management import tools_watch
from mcphost.management.tools_watch import ToolsWatch
from tests.management.conftest import _load

pytestmark = pytest.mark.django_db(transaction=True)

URL = "http://127.0.0.1:8000/admin/t/demo/functions/"
PATIENCE = 30
GOOD = "from mcphost.sdk import tool\n@tool\ndef good() -> int: return 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "tools"
    made.mkdir()
    with override_settings(MCPHOST_TOOLS=made):
        _load()
        yield made
    _load()


def test_the_terminal_names_what_was_registered_kept_refused_and_removed(folder: Path) -> None:
    texts: list[str] = []
    watch = ToolsWatch(texts.append, URL)
    watch.reload()
    assert texts == []
    (folder / "mine.py").write_text(GOOD)
    watch.reload()
    assert texts.pop().splitlines() == [
        "Changed: tools/mine.py",
        "  registered  mine.good (tool, new)",
        f"  Grant new functions to a tenant, then create a tool of them: {URL}",
    ]
    (folder / "mine.py").write_text(GOOD + "@tool\ndef bad(: ...\n")
    watch.reload()
    assert texts.pop().splitlines() == [
        "Changed: tools/mine.py",
        "  refused     tools/mine.py:5: SyntaxError: invalid syntax",
        "  unchanged   mine.good runs its previous code until the new code loads",
    ]
    (folder / "mine.py").write_text(GOOD.replace("good", "better"))
    watch.reload()
    assert texts.pop().splitlines()[:3] == [
        "Changed: tools/mine.py",
        "  registered  mine.better (tool, new)",
        "  removed     mine.good",
    ]


def test_its_thread_looks_until_it_is_stopped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_watch, "POLL_SECONDS", 0.01)
    texts: SimpleQueue[str] = SimpleQueue()
    watch = ToolsWatch(texts.put, URL)
    watch.start()
    try:
        (folder / "mine.py").write_text(GOOD)
        assert "mine.py" in texts.get(timeout=PATIENCE)
    finally:
        watch.stop()
    (folder / "mine.py").write_text(GOOD + "\n")
    assert texts.empty()


def test_many_changed_files_are_named_in_part(folder: Path) -> None:
    texts: list[str] = []
    for number in range(7):
        (folder / f"file{number}.py").write_text("")
    ToolsWatch(texts.append, URL).reload()
    assert "tools/file4.py and 2 more" in texts[0]
