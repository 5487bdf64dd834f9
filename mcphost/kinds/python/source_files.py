"""The source files in folders with tools: what changes when an author saves one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

Stamps = Mapping[Path, tuple[int, int]]
"""Time of change in nanoseconds and size of each file."""


def stamps(folders: Sequence[Path]) -> Stamps:
    """Return the stamps of all Python files in the folders and in those below them."""
    read: dict[Path, tuple[int, int]] = {}
    for path in _python_files(folders):
        with suppress(OSError):  # an editor may replace it at this moment
            status = path.stat()
            read[path] = status.st_mtime_ns, status.st_size
    return read


def changed_files(before: Stamps, after: Stamps) -> tuple[Path, ...]:
    """Return the files that are new, changed or gone, by path."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))


def drop_bytecode(path: Path) -> None:
    """Delete the compiled form of a file. Python takes it for current if the file has the same size and
    was changed in the same second."""
    with suppress(OSError):
        Path(cache_from_source(str(path))).unlink()


def _python_files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for parent, inner, files in os.walk(folder):
            inner[:] = [name for name in inner if name[0] != "." and name != "__pycache__"]
            yield from (Path(parent, file) for file in files if file.endswith(".py"))
