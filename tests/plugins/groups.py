"""Keeps tests that share servers in one test process, with `--dist loadgroup`.

A test belongs to the group of the first of these fixtures that it uses. All others belong to the group of their
file, because what they share is shared by its tests. The groups begin in this order: the longest run first.

The process that hands tests out does not collect them: those that do tell it the groups by a file. (xdist's own
groups are part of the ids of tests, which pytest 9.2 does not let it change.)
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

FILE = "TEST_GROUPS"
"""The variable that names the file with a line for each test."""
GROUPS: Mapping[str, str] = {
    "pair": "pair",
    "cluster": "restarted",
    "attacked": "attacked",
    "sqlite_server": "attacked",
    "postgresql_server": "attacked",
    "limited": "limited",
    "limited_postgresql": "limited",
    "two_limited": "limited",
    "either": "sqlite",
    "other_server": "sqlite",
    "any_server": "sqlite",
    "server": "sqlite",
    "runserver": "sqlite",
    "calling_out": "calling_out",
}
"""The group of each shared fixture."""
_ORDER = list(dict.fromkeys(GROUPS.values()))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out all tests of a group at once, the groups in the order in which they were collected."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        lines = Path(os.environ[FILE]).read_text().splitlines()
        self._groups = dict(line.split("\t") for line in lines)
        self.config.option.loadscopereorder = False
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        descriptor, os.environ[FILE] = tempfile.mkstemp(prefix="mcphost-groups-")
        os.close(descriptor)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not getattr(config.option, "loadgroup", False):  # set in test processes of xdist
        return
    groups = {item.nodeid: group_of(item) for item in items}
    items.sort(key=lambda item: _rank(groups[item.nodeid]))
    with Path(os.environ[FILE]).open("a") as file:
        file.write("".join(f"{nodeid}\t{group}\n" for nodeid, group in groups.items()))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and FILE in os.environ:
        Path(os.environ.pop(FILE)).unlink(missing_ok=True)


def group_of(item: pytest.Item) -> str:
    used = getattr(item, "fixturenames", ())
    shared = (group for fixture, group in GROUPS.items() if fixture in used)
    return next(shared, item.nodeid.partition("::")[0])


def _rank(group: str) -> int:
    return _ORDER.index(group) if group in _ORDER else len(_ORDER)
