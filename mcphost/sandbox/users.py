"""User ids of workers. No two workers on this machine have the same one at the same time.

Processes of one user may send each other signals, so two tenants must not share one: neither in one
process of the server nor in several.
"""

import os
import socket
from typing import Final

FIRST_USER: Final = 65100
USERS: Final = 400
"""How many there are, in a range that no package uses."""


class WorkerUser:
    """A user id, reserved for one worker until `free`.

    The reservation is a name that the system gives to one socket only, and takes back when the server
    process ends. `own` is whether there is one: without the rights of root a worker keeps the user of
    the server.
    """

    def __init__(self) -> None:
        self.id = FIRST_USER
        self._name: socket.socket | None = None
        if os.geteuid() == 0:
            self._reserve()

    @property
    def own(self) -> bool:
        return self._name is not None

    def free(self) -> None:
        """Give the id to others. The processes that had it must have ended."""
        if self._name is not None:
            self._name.close()
            self._name = None

    def _reserve(self) -> None:
        for number in range(USERS):
            name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                name.bind(f"\0mcphost-sandbox-{FIRST_USER + number}")
            except OSError:
                name.close()
                continue
            self.id, self._name = FIRST_USER + number, name
            return
        raise OSError(f"no user id is free: {USERS} workers run on this machine")
