import base64
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def manage(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], "MCPHOST_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_command_without_secrets_is_refused_in_one_line(tmp_path):
    done = manage(tmp_path, "check")
    assert done.returncode == 1
    assert done.stderr.startswith("mcphost: no secret key")
    assert "Traceback" not in done.stderr


def test_no_command_but_init_writes_a_secret(tmp_path):
    manage(tmp_path, "check")
    assert list(tmp_path.iterdir()) == []


def test_init_in_a_strange_folder_is_refused_in_one_line(tmp_path):
    (tmp_path / "thesis.tex").touch()
    done = manage(tmp_path, "init")
    assert done.returncode == 1
    assert done.stderr.startswith("mcphost: ")
    assert len(done.stderr.splitlines()) == 1


def test_one_master_key_replaces_another_as_the_documentation_says(tmp_path):
    """docs/keys.md, "Another master key", with the files of the data folder."""
    home = tmp_path / "var"
    assert manage(home, "init", "--demo").returncode == 0
    before = (home / "master-key").read_text().strip()
    fresh = base64.b64encode(os.urandom(32)).decode()
    (home / "new-master-key").write_text(fresh + "\n")
    (home / "new-master-key").chmod(0o600)
    first = manage(home, "keys", "rewrap")
    assert first.returncode == 0, first.stderr
    assert "Rewrapped: 1 key and the secrets of 1 tenant, under master key" in first.stdout
    for given in (before, fresh):
        only = {"MCPHOST_MASTER_KEY": given, "MCPHOST_NEW_MASTER_KEY_FILE": "/nowhere"}
        done = manage(home, "check", "--database", "default", **only)
        assert done.returncode == 0, done.stderr
    (home / "new-master-key").rename(home / "master-key")
    last = manage(home, "keys", "rewrap", "--yes")
    assert last.returncode == 0, last.stderr
    assert (
        "All keys and secrets are wrapped under master key" in manage(home, "keys", "list").stdout
    )
    late = manage(home, "keys", "list", MCPHOST_MASTER_KEY=before)
    check = manage(home, "check", "--database", "default", MCPHOST_MASTER_KEY=before)
    assert "restore the master key that belongs to this database" in check.stderr
    assert late.returncode == check.returncode == 1
    assert before not in first.stdout + last.stdout + late.stderr + check.stderr
