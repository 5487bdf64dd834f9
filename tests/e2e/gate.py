"""A door before a server, on a port of its own: open, shut, and open again."""

import socket
import threading
from contextlib import suppress

PATIENCE = 20


class Gate:
    """Hands connections on while it is open; shutting it cuts those that it handed on."""

    def __init__(self, host: str, port: int) -> None:
        self._behind = (host, port)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._door: socket.socket | None = None
        self._through: list[socket.socket] = []

    def open(self) -> None:
        self._door = socket.create_server(("127.0.0.1", self.port))
        self._start(self._admit, self._door)

    def shut(self) -> None:
        door, self._door = self._door, None
        for each in ([door] if door else []) + self._through:
            _cut(each)
        self._through = []

    def _admit(self, door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                outer = door.accept()[0]
                inner = socket.create_connection(self._behind, PATIENCE)
                inner.settimeout(None)
                self._through += [outer, inner]
                self._start(_carry, outer, inner)
                self._start(_carry, inner, outer)

    def _start(self, work: object, *sockets: socket.socket) -> None:
        threading.Thread(target=work, args=sockets, daemon=True).start()  # type: ignore[arg-type]


def _carry(source: socket.socket, goal: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            goal.sendall(data)
    _cut(source)
    _cut(goal)


def _cut(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
