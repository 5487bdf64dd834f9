import socket
import stat
from pathlib import Path

import pytest

from bootstrap import preflight
from bootstrap.preflight import Interpreter

HOST = "127.0.0.1"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A PATH with an empty folder for interpreters."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def install(folder: Path, name: str, script: str) -> str:
    command = folder / name
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return str(command)


def test_the_default_python_is_chosen_when_it_is_complete(path):
    given = install(path, "python3", "echo found 3.12.4")
    install(path, "python3.13", "echo found 3.13.1")
    chosen = preflight.choose_interpreter(given)
    assert chosen is not None
    assert chosen.command == given


def test_another_python_is_chosen_when_the_default_one_is_too_old(path):
    given = install(path, "python3", "echo found 3.9.2 version")
    install(path, "python3.13", "echo shim >&2; exit 127")
    install(path, "python3.12", "echo found 3.12.4 venv")
    install(path, "python3.11", "echo found 3.11.2")
    chosen = preflight.choose_interpreter(given)
    assert chosen is not None
    assert (chosen.command, chosen.version) == ("python3.11", "3.11.2")


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        (("version", "venv"), "too old"),
        (("venv",), "apt install python3-venv"),
        (("sqlite3",), "libsqlite3-dev"),
    ],
)
def test_the_advice_names_what_the_interpreter_lacks(lacks, words):
    assert words in preflight.interpreter_problem(Interpreter("python3", "3.11.2", lacks))
    assert "install Python" in preflight.interpreter_problem(None)


@pytest.fixture
def taken():
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        yield str(server.getsockname()[1])


def test_an_occupied_port_is_refused_with_advice_and_a_free_one_is_accepted(taken):
    problem = preflight.address_problem({"HOST": HOST, "PORT": taken})
    assert f"port {taken} on {HOST} is taken" in problem
    assert "set PORT" in problem
    with socket.socket() as server:
        server.bind((HOST, 0))
        free = str(server.getsockname()[1])
    assert preflight.address_problem({"HOST": HOST, "PORT": free}) == ""


@pytest.mark.parametrize(
    "port",
    [
        "eighty",
        "0",
        "-1",
    ],
)
def test_an_invalid_port_is_refused_by_the_name_of_its_variable(port):
    assert preflight.address_problem({"PORT": port}).startswith("PORT is")


@pytest.mark.parametrize("host", ["192.0.2.1", "no such name"])
def test_a_host_of_another_machine_is_refused_by_the_name_of_its_variable(host, taken):
    assert preflight.address_problem({"HOST": host, "PORT": taken}).startswith("HOST is")
