"""Fixtures: a new data folder with the test's database and this repository's tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from mcphost import home
from mcphost.catalogue import compiling, kinds
from tests.tools.shipped_tools import FOLDER


@pytest.fixture
def data(tmp_path: Path) -> Iterator[home.Home]:
    """The data folder of `init` and `up`, as it is on a new server."""
    with override_settings(MCPHOST_HOME=tmp_path, MCPHOST_TOOLS=FOLDER):
        _load()
        yield home.Home(tmp_path)
    _load()


@pytest.fixture
def suite(data: home.Home) -> Iterator[None]:
    """The functions of the conformance suite are loaded, too."""
    with override_settings(MCPHOST_CONFORMANCE=True):
        _load()
        yield


def _load() -> None:
    kinds.discover()
    compiling.forget_all()
