"""Looks at the machine before anything is installed, and says what would help.

Every check returns a sentence or an empty string, so that all problems are told at once.
"""

import errno
import os
import socket
import subprocess
import sys

OLDEST = (3, 11)
# Django asks for 3.31; `RETURNING`, which claims and counters are built on, came with 3.35.
OLDEST_SQLITE = (3, 35)
OTHER_INTERPRETERS = ("python3.13", "python3.12", "python3.11")
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = "8000"

_PROBE = """
import sys
problems = []
if sys.version_info[:2] < {oldest!r}:
    problems.append("version")
for name in ("venv", "ensurepip"):
    try:
        __import__(name)
    except ImportError:
        problems.append(name)
try:
    import sqlite3
    if sqlite3.sqlite_version_info[:2] < {sqlite!r}:
        problems.append("old-sqlite3")
except ImportError:
    problems.append("sqlite3")
print("found", ".".join(map(str, sys.version_info[:3])), *problems)
"""


class Interpreter:
    """One Python, and what it lacks: of `version venv ensurepip sqlite3 old-sqlite3`."""

    def __init__(self, command: str, version: str, lacks: "tuple[str, ...]") -> None:
        self.command = command
        self.version = version
        self.lacks = lacks

    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


def look_at(command: str) -> "Interpreter | None":
    """What `command` is, found out by running it; None if it does not run.

    Being on the PATH says little: version managers leave shims there that only print an error.
    """
    probe = _PROBE.format(oldest=OLDEST, sqlite=OLDEST_SQLITE)
    try:
        done = subprocess.run(
            [command, "-c", probe],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.decode("utf-8", "replace").split()
    if done.returncode or words[:1] != ["found"] or len(words) < 2:
        return None
    return Interpreter(command, words[1], tuple(words[2:]))


def choose_interpreter(first: str = sys.executable) -> "Interpreter | None":
    """The first Python that lacks nothing: the one `make` was given, or another that works here.

    If none is complete, the one it was given is returned for the sake of the advice.
    """
    given = look_at(first)
    if given is not None and not given.lacks:
        return given
    for command in OTHER_INTERPRETERS:
        other = look_at(command)
        if other is not None and not other.lacks:
            return other
    return given


def interpreter_problem(interpreter: "Interpreter | None") -> str:
    """Why this Python will not do and what would help; empty if it will."""
    if interpreter is None:
        return "no Python runs here: install Python 3.11 or newer (Debian, Ubuntu: apt install python3)"
    lacks = interpreter.lacks
    if "version" in lacks:
        return (
            "Python {0} is too old, 3.11 or newer is needed: install one (Debian, Ubuntu: "
            "apt install python3.11 python3.11-venv), or name one: make PYTHON=/path/to/python3.12"
        ).format(interpreter.version)
    if "venv" in lacks or "ensurepip" in lacks:
        return (
            "Python {0} came without `venv`: install it (Debian, Ubuntu: apt install python3-venv, "
            "or python{1}-venv)"
        ).format(interpreter.version, interpreter.minor())
    if "sqlite3" in lacks:
        return (
            "Python {0} was built without `sqlite3`: use the system's Python, or build it again "
            "with SQLite's headers (Debian, Ubuntu: apt install libsqlite3-dev)"
        ).format(interpreter.version)
    if "old-sqlite3" in lacks:
        return "Python {0} has an SQLite older than 3.35: use a newer Python".format(
            interpreter.version
        )
    return ""


def address_problem(environ: "os._Environ[str] | dict[str, str]") -> str:
    """Why the server could not listen on HOST and PORT; empty if it could."""
    host = environ.get("HOST") or DEFAULT_HOST
    text = environ.get("PORT") or DEFAULT_PORT
    if not text.isdigit() or not 0 < int(text) < 65536:
        return "PORT is {0!r}; it has to be a number from 1 to 65535".format(text)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, int(text), type=socket.SOCK_STREAM
        )[0]
    except OSError:
        return "HOST is {0!r}, which is no address of this machine".format(host)
    with socket.socket(family, kind, protocol) as probe:
        # As the server does: a port that only waits for old connections to fade is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            return _listening_problem(error, host, int(text))
    return ""


def _listening_problem(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "port {0} on {1} is taken: set PORT to a free one, for example `make up PORT={2}`"
        ).format(port, host, port % 65535 + 1)
    if error.errno == errno.EACCES:
        return "port {0} may only be opened by root: set PORT to one above 1023".format(port)
    if error.errno == errno.EADDRNOTAVAIL:
        return "HOST is {0!r}, which is no address of this machine".format(host)
    return "cannot listen on HOST {0}, PORT {1}: {2}".format(host, port, error.strerror)
