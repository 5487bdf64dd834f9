import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def manage(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "MCPHOST_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_command_without_secrets_fails_with_one_line_and_creates_no_files(tmp_path):
    done = manage(tmp_path, "check")
    assert done.returncode == 1
    assert done.stderr.startswith("mcphost: no secret key")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
