import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins import canaries

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


def test_in_ci_a_skipped_test_is_a_failure_with_its_reason(tmp_path):
    (tmp_path / "test_module.py").write_text(
        'import pytest\npytest.skip("no Redis", allow_module_level=True)\n'
    )
    code, output = run(tmp_path, SKIPPING, "--continue-on-collection-errors", CI="true")
    assert code == 1
    for reason in ("no database", "no browser", "no Redis"):
        assert f"nothing may skip: Skipped: {reason}" in output
    assert "1 xfailed" in output


@pytest.mark.parametrize(
    "line",
    [
        f"the password was {canaries.CANARY}",
        "token mcph_" + "a1B2c3D4e5F6" + "_" + "s" * 43 + "_" + "c0ffee",
        "key dGVzdHMtb25seS1tYXN0ZXIta2V5LXRlc3RzLW9ubHk=",
    ],
)
def test_a_line_with_a_secret_is_detected(line):
    assert canaries.holds_a_secret(line)


def test_no_record_of_this_process_contains_a_secret():
    before = canaries.grep.lines
    logging.getLogger("mcphost.sample").debug("a line")
    assert canaries.grep.lines == before + 1
    assert canaries.grep.found == []


def test_a_secret_in_the_traceback_of_a_log_record_is_detected():
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


def test_a_database_only_run_deselects_tests_that_must_not_use_the_database(tmp_path):
    _, output = run(tmp_path, OF_DATABASE, "--only-database", "--collect-only")
    assert "2/3 tests collected (1 deselected)" in output
    assert "test_without" not in output
