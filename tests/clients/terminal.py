"""Clients that are used in a terminal: what they show is waited for, and what a person types is typed."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PATIENCE: Final = 60
SILENCE: Final = 2
_SIZE: Final = struct.pack("HHHH", 40, 160, 0, 0)
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


def converse(command: Sequence[str], folder: Path, lines: Sequence[tuple[str, str]]) -> None:
    """Run a command until it has shown the last text: wait for each, and type what belongs to it.

    Raises AssertionError with what it has shown, if a text does not come.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, _SIZE)
    process = subprocess.Popen(
        command, cwd=folder, stdin=its, stdout=its, stderr=its, start_new_session=True
    )
    os.close(its)
    try:
        for text, typed in lines:
            _wait_for(ours, text)
            _wait_for_silence(ours)
            os.write(ours, typed.encode())
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(ours)


def _wait_for_silence(terminal: int) -> None:
    """Read what is still shown: some clients take what is typed faster for pasted text."""
    with contextlib.suppress(OSError):
        while select.select([terminal], [], [], SILENCE)[0] and os.read(terminal, 1 << 16):
            pass


def _wait_for(terminal: int, text: str) -> None:
    shown, ends = "", time.monotonic() + PATIENCE
    while text not in _ESCAPES.sub("", shown):
        remaining = ends - time.monotonic()
        piece = b""
        if remaining > 0 and select.select([terminal], [], [], remaining)[0]:
            with contextlib.suppress(OSError):  # the command has ended
                piece = os.read(terminal, 1 << 16)
        assert piece, f"{text!r} was not shown: {_ESCAPES.sub('', shown)[-500:]}"
        shown += piece.decode(errors="replace")
