"""A new data folder over the test's database, with the tools of this repository."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from mcphost import home
from mcphost.catalogue import compiling, kinds
from tests.tools.shelf import FOLDER


@pytest.fixture
def data(tmp_path: Path) -> Iterator[home.Home]:
    """Where `init` and `up` write: as a new server finds it."""
    with override_settings(MCPHOST_HOME=tmp_path, MCPHOST_TOOLS=FOLDER):
        kinds.discover()
        compiling.forget_all()
        yield home.Home(tmp_path)
    kinds.discover()
    compiling.forget_all()
