"""Tests that operators can follow docs/deploy.md and deploy/: every name in them exists."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands
from django.db.migrations.recorder import MigrationRecorder

from mcphost.settings import Environment

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "deploy.md").read_text()
UNIT = (DEPLOY / "systemd" / "mcphost@.service").read_text()
SHIPPED = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
EVERYTHING = "\n".join([GUIDE, *(path.read_text() for path in SHIPPED)])
COMPOSE_FILE = DEPLOY / "compose" / "compose.yaml"
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_FILE.read_text())
# Files that the operator creates, as docs/deploy.md says.
MADE_BY_HAND = ("master-key", "tls")
LAST_WORDS_SECONDS = 30
"""The time after the drain: for cancelling the remaining calls and writing the last records."""


def default(name: str) -> Any:
    return Environment.model_fields[name].default


def values(directive: str, text: str = UNIT) -> list[str]:
    """Return all values of a name in a unit or an environment file."""
    return re.findall(rf"^{directive}=(.*)$", text, re.MULTILINE)


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, **options
    )


def environment(*left_out: str) -> dict[str, str]:
    """Return the environment without what would configure the server."""
    names = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", *left_out)
    kept = os.environ.items()
    return {name: text for name, text in kept if "MCPHOST" not in name and name not in names}


def test_every_setting_in_the_guide_exists() -> None:
    known = {Environment.variable(name) for name in Environment.model_fields}
    known |= set(re.findall(r'"(MCPHOST_[A-Z_]+)"', (ROOT / "mcphost" / "home.py").read_text()))
    named = set(re.findall(r"\b(?:MCPHOST|DATABASE|REDIS)_[A-Z_]+\b", EVERYTHING))
    assert {"DATABASE_URL", "MCPHOST_HOME"} < named
    assert named <= known


def test_every_command_in_the_guide_exists() -> None:
    said = r"""(?:manage\.py|deploy/manage)"?,? "?(?!with\b|"\$@")([a-z]+)"""
    commands = set(re.findall(said, EVERYTHING))
    assert {"init", "serve", "check", "token"} <= commands
    assert commands <= set(get_commands())


def test_every_file_in_the_guide_exists() -> None:
    for name in re.findall(r"\b(deploy/[\w./@-]+\w)", EVERYTHING):
        made = Path(name).name in (*MADE_BY_HAND, ".env")
        assert made or (ROOT / name).exists(), name


def test_the_service_manager_waits_for_the_whole_drain() -> None:
    needed = default("notice_seconds") + default("drain_seconds") + LAST_WORDS_SECONDS
    assert int(values("TimeoutStopSec")[0]) >= needed
    for name in ("node1", "node2", "init"):
        assert int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s")) >= needed
    assert (values("KillSignal"), values("KillMode")) == (["SIGTERM"], ["mixed"])


def test_the_systemd_unit_and_the_guide_use_the_same_paths() -> None:
    (start,) = values("ExecStart")
    (after,) = values("ExecStartPost")
    assert start.endswith("/.venv/bin/python manage.py serve --port %i")
    assert f"sudo git clone <the repository> {values('WorkingDirectory')[0]}" in GUIDE
    assert (ROOT / after.split()[1]).exists()
    assert int(values("TimeoutStartSec")[0]) > int(after.split()[-1])
    assert f"{values('EnvironmentFile')[0]}\n" in GUIDE
    (home,) = values("MCPHOST_HOME", (DEPLOY / "systemd" / "mcphost.env").read_text())
    assert home == f"/var/lib/{values('StateDirectory')[0]}"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "mcphost@.service"
    python = UNIT.replace("/opt/mcphost/.venv/bin/python", sys.executable)
    unit.write_text(python.replace("/opt/mcphost", str(ROOT)))
    for words in (("verify",), ("security", "--offline=true", "--threshold=25")):
        name = str(unit if words[0] == "security" else tmp_path / "mcphost@8001.service")
        said = run("systemd-analyze", "--no-pager", *words, name)
        assert said.returncode == 0, said.stdout + said.stderr


def test_the_compose_file_names_only_existing_services_secrets_and_files() -> None:
    folder = COMPOSE_FILE.parent
    services = COMPOSE["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"]), name
        if "build" in service:
            context = (folder / service["build"]["context"]).resolve()
            assert context == ROOT
            assert (context / service["build"]["dockerfile"]).exists()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            there = (folder / source).exists() or Path(source).name in MADE_BY_HAND
            assert there if source.startswith(".") else source in COMPOSE["volumes"], volume
    for secret in COMPOSE["secrets"].values():
        assert Path(secret["file"]).name in MADE_BY_HAND
    example = (folder / "env.example").read_text()
    for variable in re.findall(r"\$\{([A-Z_]+)", COMPOSE_FILE.read_text()):
        assert values(variable, example), variable


def _has_compose() -> bool:
    command = ["/bin/sh", "-c", "docker compose version"]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


if _has_compose():  # its package name differs by distribution; the tests above do not need it

    def test_docker_compose_accepts_the_file() -> None:
        given = {**os.environ, "POSTGRES_PASSWORD": "x", "SERVER_NAME": "mcp.example.com"}
        said = run("docker", "compose", "-f", str(COMPOSE_FILE), "config", "--quiet", env=given)
        assert said.returncode == 0, said.stderr


def _image(folder: Path) -> dict[str, str]:
    """Put the files of the image into a folder; return the variables that it sets."""
    folder.mkdir()
    dockerfile = (DEPLOY / "compose" / "Dockerfile").read_text()
    for source, target in re.findall(r"^COPY (\S+) (\S+)$", dockerfile, re.MULTILINE):
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, folder / target)
        else:
            shutil.copy(ROOT / source, folder / target)
    (settings,) = re.findall(r"^ENV (.*)$", dockerfile, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in settings.split())


def _shipped_environment(tmp_path: Path, **paths: Path) -> Path:
    """Write the environment file of the service with other paths, and without its databases."""
    text = (DEPLOY / "systemd" / "mcphost.env").read_text()
    text = re.sub(r"^(DATABASE|REDIS)_URL=.*\n", "", text, flags=re.MULTILINE)
    for name, path in paths.items():
        variable = f"MCPHOST_{name.upper()}"
        text = re.sub(rf"^{variable}=.*", f"{variable}={path}", text, flags=re.MULTILINE)
    file = tmp_path / "mcphost.env"
    file.write_text(text)
    return file


def _put_back(home: Path) -> None:
    """Make a backup as the guide does, and start again from nothing but that."""
    (statement,) = re.findall(r'sqlite3 \S+ "(VACUUM INTO [^"]+)"', GUIDE)
    with closing(sqlite3.connect(home / "db.sqlite3")) as database:
        database.execute(statement.replace("/var/lib/mcphost", str(home)))
    for name in ("db.sqlite3", "db.sqlite3-wal", "db.sqlite3-shm"):
        (home / name).unlink(missing_ok=True)
    (home / "backup.sqlite3").rename(home / "db.sqlite3")


def test_the_image_serves_and_its_backup_passes_the_deployment_checks(
    tmp_path: Path,
) -> None:
    """One scenario: each process takes seconds to start, and the first one to migrate."""
    image, home, key = (tmp_path / name for name in ("image", "data", "master-key"))
    key.write_text("dGVzdHMtb25seS1tYXN0ZXIta2V5LXRlc3RzLW9ubHk=\n")
    given = _image(image)
    assert given["MCPHOST_HOME"] == "/data"
    clean = environment("HOST", "PYTHONDONTWRITEBYTECODE")  # the second process starts sooner
    given |= {"MCPHOST_HOME": str(home), "MCPHOST_MASTER_KEY_FILE": str(key)}
    made = run(sys.executable, "manage.py", "init", cwd=image, env={**clean, **given})
    assert made.returncode == 0, made.stderr
    _put_back(home)

    shutil.copy(DEPLOY / "manage", image / "deploy" / "manage")
    (image / ".venv").symlink_to(ROOT / ".venv")
    file = _shipped_environment(tmp_path, home=home, master_key_file=key)
    # `init` again, and `check --deploy --fail-level ERROR`.
    both = "call_command('init'); call_command('check', deploy=True, fail_level='ERROR')"
    script = f"from django.core.management import call_command; {both}"
    command = (str(image / "deploy" / "manage"), "shell", "--no-imports", "-c", script)
    again = run(*command, env={**clean, "ENV_FILE": str(file)})
    assert again.returncode == 0, again.stderr
    with closing(sqlite3.connect(home / "db.sqlite3")) as database:
        assert database.execute("SELECT count(*) FROM auth_user").fetchone() == (1,)
        table = MigrationRecorder.Migration._meta.db_table
        assert database.execute(f"SELECT count(*) FROM {table}").fetchone() > (0,)


def test_nginx_closes_idle_connections_first_and_does_not_retry_calls() -> None:
    shared = (DEPLOY / "nginx" / "mcphost-proxy.conf").read_text()
    settings = re.sub(r"#.*", "", shared)
    assert "non_idempotent" not in settings
    assert "http_5" not in settings
    assert "proxy_buffering off;" in settings
    assert "proxy_set_header X-Forwarded-For $remote_addr;" in settings
    (read,) = re.findall(r"proxy_read_timeout (\d+)s;", settings)
    assert int(read) > 2 * default("comment_seconds")
    for name in ("nginx/mcphost.conf", "compose/nginx.conf.template"):
        text = (DEPLOY / name).read_text()
        (idle,) = re.findall(r"keepalive_timeout (\d+)s;", text)
        (body,) = re.findall(r"client_max_body_size (\d+)m;", text)
        assert int(idle) < default("keepalive_seconds")
        assert int(body) * 2**20 > default("body_limit")
