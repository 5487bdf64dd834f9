"""The program of a worker process. It serves one tenant, one job after another, over one socket.

It is started with `python -I`, an empty environment, and nothing of the server but this package.
"""

# The interpreter's decimals become those of this process, which reads no files once it is confined.
import decimal  # noqa: F401
import os
import socket
from pathlib import Path
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic_monty import Monty

from mcphost.sandbox.confinement import allow_no_more_processes, confine
from mcphost.sandbox.frames import HEAD, BrokenFrameError, frame, length_of, message_of
from mcphost.sandbox.scripts import LastMessageError, ScriptJob, check


class ServerConnection:
    """The socket to the server. Ends the process when the server has closed it."""

    def __init__(self, number: int) -> None:
        self._socket = socket.socket(fileno=number)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; one that cannot be sent is replaced by the reason."""
        try:
            written = frame(message)
        except BrokenFrameError as error:
            written = frame({"is": "failed", "why": "output", "message": str(error)})
        self._socket.sendall(written)

    def receive(self) -> dict[str, Any]:
        return message_of(self._read_bytes(length_of(self._read_bytes(HEAD))))

    def _read_bytes(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._socket.recv(min(count, 1 << 16))
            if not part:
                os._exit(0)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def main(number: str, user: str, binary: str) -> None:
    """Serve jobs from the socket with this number until it is closed."""
    connection = ServerConnection(int(number))
    status = confine(int(user), Path(binary))
    with Monty(binary_path=binary, min_processes=1, max_processes=1) as monty:
        with monty.checkout() as session:
            session.feed_run("import json, re, datetime, asyncio")  # loads what calls will need
            child = session.worker_pid or 0
        allow_no_more_processes(child)
        connection.send({"is": "ready", "status": status})
        while True:
            job = connection.receive()
            try:
                connection.send(_do_job(job, monty, connection))
            except MemoryError:
                connection.send({"is": "failed", "why": "memory", "message": "out of memory"})
                os._exit(1)
            except LastMessageError as end:  # the interpreter is gone, and no other can be started
                connection.send(end.message)
                os._exit(1)


def _do_job(job: dict[str, Any], monty: Monty, connection: ServerConnection) -> dict[str, Any]:
    match job["do"]:
        case "search":
            return search(job["expression"], job["data"])
        case "check":
            return check(job, monty)
        case _:
            return ScriptJob(job, connection.send, connection.receive).run(monty)


def search(expression: str, data: Any) -> dict[str, Any]:
    """Evaluate an expression. Returns the message with its value, or why there is none."""
    try:
        return {"is": "done", "value": jmespath.search(expression, data)}
    except (JMESPathError, ValueError, TypeError, ArithmeticError, AttributeError) as error:
        return {"is": "failed", "why": "error", "message": str(error)[:1000]}
    except RecursionError:
        return {"is": "failed", "why": "recursion", "message": "the expression is nested too deep"}
