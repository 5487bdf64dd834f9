"""Tests of creating the environment, with a fake Python that logs its arguments."""

import ast
import json
from pathlib import Path

import pytest

from bootstrap import __main__ as command
from bootstrap import environment, preflight
from bootstrap.environment import Environment, SetupError

PYTHON = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *"-m venv"*) mkdir -p {venv}/bin && cp "$0" {venv}/bin/python ;;
  *"-m pip"*) if [ -e {root}/offline ]; then exit 1; fi ;;
esac
exit 0
"""


class Workshop:
    """A checkout with two lock files, a fake Python, and the log of its arguments."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "log"
        self.log.touch()
        (root / "requirements.lock").write_text("django==5.2.19\n")
        (root / "requirements-dev.lock").write_text("django==5.2.19\npytest==9.2\n")
        self.python = root / "python3"
        self.python.write_text(PYTHON.format(log=self.log, venv=root / ".venv", root=root))
        self.python.chmod(0o755)
        self.place = Environment(root)

    def make(self, profile: str) -> None:
        self.log.write_text("")
        self.place.make(profile, str(self.python))

    def asked(self) -> list[str]:
        lines = self.log.read_text().splitlines()
        return [
            "venv" if "venv" in x.split() else x.split()[-1].rsplit("/")[-1]
            for x in lines
            if x.startswith("-m")
        ]


@pytest.fixture
def workshop(tmp_path):
    return Workshop(tmp_path)


def test_a_fresh_checkout_gets_an_environment_from_the_hashed_lock_and_adds_packages_later(
    workshop,
):
    place = workshop.place
    assert not place.is_complete("runtime")
    workshop.make("runtime")
    assert workshop.asked() == ["venv", "requirements.lock"]
    assert "--require-hashes" in workshop.log.read_text()
    assert "--no-deps" in workshop.log.read_text()
    assert place.is_complete("runtime")
    assert not place.is_complete("dev")
    workshop.make("dev")
    assert workshop.asked() == ["requirements-dev.lock"]
    assert place.is_complete("dev")
    assert place.is_complete("runtime")
    stamp = json.loads(place.stamp.read_text())
    assert set(stamp) == {"requirements.lock", "requirements-dev.lock"}
    assert stamp == place.wanted("dev")
    (workshop.root / "requirements-dev.lock").write_text("pytest==9.3\n")
    assert place.is_complete("runtime"), "this lock does not concern the server"
    assert not place.is_complete("dev")
    place.python.unlink()
    assert not place.is_complete("runtime")


@pytest.mark.parametrize("hashed", [False, True])
def test_requirements_of_tools_are_installed_after_the_lock_and_named_in_the_output(
    workshop, capsys, hashed
):
    tools = workshop.root / "tools"
    tools.mkdir()
    needs = "httpx==1.0 --hash=sha256:00\n" if hashed else "httpx\n"
    (tools / "requirements.txt").write_text(needs)
    workshop.make("runtime")
    assert workshop.asked() == ["venv", "requirements.lock", "requirements.txt"]
    how = "by its hashes" if hashed else "without hashes"
    assert f"Installing tools/requirements.txt, {how}." in capsys.readouterr().out
    last = workshop.log.read_text().splitlines()[-1]
    assert ("--require-hashes" in last, "--constraint" in last) == (hashed, not hashed)
    if not hashed:
        assert (workshop.place.path / "constraints.txt").read_text() == "django==5.2.19\n"
    assert workshop.place.is_complete("runtime")
    workshop.make("dev")
    assert workshop.asked() == ["requirements-dev.lock"]
    assert workshop.place.is_complete("dev")
    (tools / "requirements.txt").write_text("httpx\nboto3\n")
    assert not workshop.place.is_complete("runtime")
    workshop.make("runtime")
    assert workshop.asked() == ["venv", "requirements.lock", "requirements.txt"]
    (tools / "requirements.txt").unlink()
    assert not workshop.place.is_complete("runtime"), "what nobody needs any more is removed"


def test_an_interrupted_installation_is_repaired_by_the_next_run(workshop):
    (workshop.root / "offline").touch()
    with pytest.raises(SetupError, match=r"could not install requirements.lock"):
        workshop.make("runtime")
    assert not workshop.place.is_complete("runtime")
    (workshop.root / "offline").unlink()
    workshop.make("runtime")
    assert workshop.asked() == ["venv", "requirements.lock"]
    assert workshop.place.is_complete("runtime")
    (workshop.root / "offline").touch()
    with pytest.raises(SetupError):
        workshop.make("dev")
    assert not workshop.place.is_complete("runtime"), "an interrupted addition counts as nothing"


@pytest.mark.parametrize("text", ["{", '{"requirements.lock": "another"}'])
def test_a_stamp_with_unexpected_text_counts_as_incomplete(workshop, text):
    workshop.make("runtime")
    workshop.place.stamp.write_text(text)
    assert not workshop.place.is_complete("runtime")


@pytest.fixture
def at_home(workshop, monkeypatch):
    monkeypatch.setattr(command, "ROOT", workshop.root)
    found = preflight.Interpreter(str(workshop.python), "3.12.4", ())
    monkeypatch.setattr(preflight, "choose_interpreter", lambda: found)
    monkeypatch.delenv("HOST", raising=False)
    return workshop


def test_the_command_creates_what_is_missing_and_a_second_run_does_nothing(at_home, capsys):
    assert command.main(["dev"]) == 0
    assert "Setting up .venv with Python 3.12.4" in capsys.readouterr().out
    assert command.main(["dev"]) == 0
    assert command.main(["runtime"]) == 0
    assert capsys.readouterr().out == ""


def test_the_command_checks_the_port_before_it_installs_anything(at_home, monkeypatch, capsys):
    monkeypatch.setenv("PORT", "none")
    assert command.main(["runtime", "--serve"]) == 1
    assert "mcphost: PORT is 'none'" in capsys.readouterr().err
    assert at_home.asked() == []
    monkeypatch.delenv("PORT")
    monkeypatch.setattr(preflight, "address_problem", lambda environ: "")
    assert command.main(["runtime", "--serve"]) == 0


def test_the_locks_have_hashes_name_no_index_and_agree_on_the_servers_versions():
    root = Path(environment.__file__).parent.parent
    for name in environment.LOCKS["dev"]:
        text = (root / name).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text
    runtime, dev = (_pins(root / name) for name in environment.LOCKS["dev"])
    assert runtime <= dev


def _pins(lock: Path) -> set[str]:
    return {
        line.split()[0] for line in lock.read_text().splitlines() if "==" in line and line[0] != " "
    }


def test_the_package_has_no_syntax_newer_than_python_3_7():
    """It has no syntax newer than 3.7, so that an old interpreter can print the advice."""
    for path in Path(environment.__file__).parent.glob("*.py"):
        ast.parse(path.read_text(), path.name, feature_version=(3, 7))
