"""The modules of files with tools, which tests load from folders of their own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from mcphost.kinds.python.discovery import PREFIX


@contextmanager
def restored_modules() -> Iterator[None]:
    """Put the modules of tools back as they were: other tests go on with the functions of this process."""
    before = _loaded()
    yield
    for name in _loaded():
        del sys.modules[name]
    sys.modules.update(before)


def _loaded() -> dict[str, ModuleType]:
    return {
        name: module for name, module in sys.modules.items() if name.partition(".")[0] == PREFIX
    }
