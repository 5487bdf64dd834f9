"""One server for each database file."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcphost.serving.process import startup_checks

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
file.write("4711\\n")
file.flush()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_server_is_refused_with_the_first_ones_identity(tmp_path: Path) -> None:
    database = tmp_path / "db.sqlite3"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, f"{database}.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(ImproperlyConfigured, match=r"process 4711\) serves .*db\.sqlite3"):
        startup_checks.claim_file(database)
    holder.kill()
    holder.communicate(timeout=10)
    startup_checks.claim_file(database)  # the kernel has released the dead process's lock
    startup_checks.release(database)
