"""The program of a process that does one job: a function of bytes, within limits.

It is started with `python -I` and an empty environment. What the job needs is imported before the
process gives up its rights.
"""

import importlib
import os
import socket
import sys
from pathlib import Path
from typing import Final

from mcphost.sandbox.confinement import allow_no_more_processes, confine

OUT_OF_MEMORY: Final = 77
"""The status of a process that ended for want of memory."""
LENGTH: Final = 8
"""Bytes before each message, with its length."""

_CHUNK: Final = 1 << 20


def main(module: str, number: str, user: str, memory: str, seconds: str) -> None:
    """Read the job from the socket with this number, and send what `run` of the module returns."""
    run = importlib.import_module(module).run
    confine(int(user), Path(sys.executable), memory=int(memory), cpu_seconds=int(seconds))
    allow_no_more_processes()
    with socket.socket(fileno=int(number)) as connection:
        try:
            done: bytes = run(
                _read_bytes(connection, int.from_bytes(_read_bytes(connection, LENGTH)))
            )
            connection.sendall(len(done).to_bytes(LENGTH))
            connection.sendall(done)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)


def _read_bytes(connection: socket.socket, count: int) -> bytes:
    read = bytearray()
    while len(read) < count:
        part = connection.recv(min(count - len(read), _CHUNK))
        if not part:
            os._exit(1)
        read += part
    return bytes(read)


if __name__ == "__main__":
    main(*sys.argv[1:])
