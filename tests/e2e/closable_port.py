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
        self._keeper = threading.Thread()
        self._through: list[socket.socket] = []

    def open(self) -> None:
        self._door = socket.create_server(("127.0.0.1", self.port))
        self._keeper = _started(self._admit, self._door)

    def shut(self) -> None:
        if self._door is not None:
            _cut(self._door)
            self._keeper.join(PATIENCE)
            self._door = None
        for each in self._through:
            _cut(each)
        self._through = []

    def _admit(self, door: socket.socket) -> None:
        with door, suppress(OSError):
            while True:
                outer = door.accept()[0]
                inner = socket.create_connection(self._behind, PATIENCE)
                inner.settimeout(None)
                self._through += [outer, inner]
                _started(_hand_on, outer, inner)


def _started(work: object, *sockets: socket.socket) -> threading.Thread:
    thread = threading.Thread(target=work, args=sockets, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def _hand_on(outer: socket.socket, inner: socket.socket) -> None:
    with outer, inner:
        back = _started(_carry, inner, outer)
        _carry(outer, inner)
        back.join()


def _carry(source: socket.socket, goal: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            goal.sendall(data)
    _cut(source)
    _cut(goal)


def _cut(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
