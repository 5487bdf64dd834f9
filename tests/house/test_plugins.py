import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins import canaries, skips

ROOT = Path(__file__).parent.parent.parent
ALONE = (
    "--noconftest", "--rootdir=/", "--config-file=/dev/null", "-p", "no:django", "-p", "no:asyncio",
    "-p", "no:cacheprovider", "-p", "no:playwright", "-p", "tests.plugins.skips",
)  # fmt: skip
SKIPPING = """
import pytest

@pytest.mark.skip(reason="no database")
def test_marked():
    pass

def test_inside():
    pytest.skip("no browser")

@pytest.mark.xfail
def test_expected_to_fail():
    assert False
"""


def run(folder: Path, text: str, *options: str, **environment: str) -> tuple[int, str]:
    """Run a test file in a separate pytest process, with the plugin for skips."""
    (folder / "test_it.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", ".", "-q", "-ra", *ALONE, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_at_home_a_test_may_skip(tmp_path):
    code, output = run(tmp_path, SKIPPING, CI="")
    assert code == 0, output
    assert "2 skipped, 1 xfailed" in output


def test_in_ci_a_skip_is_a_failure_with_its_reason(tmp_path):
    (tmp_path / "test_module.py").write_text(
        'import pytest\npytest.skip("no Redis", allow_module_level=True)\n'
    )
    code, output = run(tmp_path, SKIPPING, "--continue-on-collection-errors", CI="true")
    assert code == 1
    for reason in ("no database", "no browser", "no Redis"):
        assert f"nothing may skip: Skipped: {reason}" in output
    assert "1 xfailed" in output


@pytest.mark.parametrize(
    ("value", "ci"), [("true", True), ("1", True), ("", False), ("false", False)]
)
def test_ci_is_what_the_environment_says(monkeypatch, value, ci):
    monkeypatch.setenv("CI", value)
    assert skips.in_ci() is ci


@pytest.mark.parametrize(
    "line",
    [
        f"the password was {canaries.CANARY}",
        "token mcph_" + "a1B2c3D4e5F6" + "_" + "s" * 43 + "_" + "c0ffee",
        "key tests-only-secret-key-tests-only-secret-key",
        "key dGVzdHMtb25seS1tYXN0ZXIta2V5LXRlc3RzLW9ubHk=",
    ],
)
def test_a_line_with_a_secret_is_found(line):
    assert canaries.holds_a_secret(line)


def test_an_ordinary_line_is_not():
    assert not canaries.holds_a_secret("the token mcph_[redacted] was refused")


def test_every_record_of_this_process_passes_the_grep():
    before = canaries.grep.lines
    logging.getLogger("mcphost.house").debug("a line")
    assert canaries.grep.lines == before + 1
    assert canaries.grep.found == []


def test_a_secret_in_a_record_is_seen_in_the_traceback_too():
    grep = canaries.Grep()
    log = logging.getLogger("apart-from-everything")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.addHandler(grep)
    log.info("nothing")
    try:
        raise ValueError(canaries.CANARY)
    except ValueError:
        log.exception("it failed")
    assert len(grep.found) == 1


OF_DATABASE = """
import pytest

@pytest.fixture
def db():
    pass

@pytest.fixture
def rows(db):
    pass

@pytest.mark.django_db
def test_marked():
    pass

def test_with_rows(rows):
    pass

def test_without():
    pass
"""


def test_a_run_for_the_database_leaves_out_what_may_not_use_it(tmp_path):
    _, output = run(tmp_path, OF_DATABASE, "--only-database", "--collect-only")
    assert "2/3 tests collected (1 deselected)" in output
    assert "test_without" not in output


STARTING = """
import pytest
from tests.plugins.starts import note_start

@pytest.mark.parametrize("role", ["uvicorn", "worker", "daphne", "command"])
def test_it(role):
    note_start(role)
"""


def test_a_run_that_starts_too_many_processes_fails_although_its_tests_pass(tmp_path):
    options = ("-p", "tests.plugins.starts", "-n", "2")
    code, output = run(tmp_path, STARTING, *options, MAX_STARTS="3")
    assert code == 0, output
    rows = [line.split()[:-1] for line in output.splitlines() if line.endswith("test_it.py")]
    assert ["1"] * 4 in rows
    code, output = run(tmp_path, STARTING, *options, MAX_STARTS="2")
    assert code == 1, output
    assert "3 servers and workers were started; MAX_STARTS is 2" in output
    assert "4 passed" in output


SHARING = """
import pytest

@pytest.fixture
def pair():
    pass

@pytest.mark.parametrize("number", range(3))
def test_shared(pair, number):
    pass

def test_alone():
    pass
"""


def test_tests_that_share_servers_are_one_group_and_those_of_a_file_are_another(tmp_path):
    (tmp_path / "test_other.py").write_text(SHARING)
    options = ("-p", "tests.plugins.groups", "-n", "2", "--dist", "loadgroup", "-vv")
    code, output = run(tmp_path, SHARING, *options)
    assert code == 0, output
    ran = re.findall(r"\[(gw\d)\].* PASSED (\S+)", output)
    assert len(ran) == 8
    assert len({worker for worker, test in ran if "test_shared" in test}) == 1
