"""Folders under `build/` that several test processes share: made by one of them, used by all."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process makes `folder`, and keep the others waiting meanwhile."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def copy_changed(source: Path, folder: Path) -> None:
    """Copy a file into `folder` unless it is there already: another process may be reading it."""
    there = folder / source.name
    if not there.exists() or there.read_bytes() != source.read_bytes():
        shutil.copy(source, there)
