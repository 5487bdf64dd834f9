"""Tests of the settings, loaded in a separate process, so that those of this process stay."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcphost import settings
from mcphost.settings import Environment

ROOT = Path(settings.__file__).parent.parent
SHOW = """
import json, sys
from mcphost import settings
print(json.dumps({name: getattr(settings, name) for name in sys.argv[1:]}, default=str))
"""


def load(tmp_path: Path, *names: str, **environment: str) -> dict[str, Any]:
    """Return the named settings, loaded with only these environment variables."""
    clean = {"PATH": os.environ["PATH"], "MCPHOST_SECRET_KEY": "x", "MCPHOST_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *names],
        cwd=ROOT,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


COOKIES = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
TASKS = ("MCPHOST_TASK_ENGINE", "MCPHOST_TASK_WORKER_IN_SERVER", "INSTALLED_APPS")
QUEUE = "procrastinate.contrib.django"
SQLITE = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}


@pytest.mark.requirement("http.loopback-by-default")
def test_by_default_only_this_machine_is_served_and_without_https(tmp_path):
    found = load(
        tmp_path,
        "DEBUG", "MCPHOST_HOST", "MCPHOST_PORT", "MCPHOST_HTTPS", "ALLOWED_HOSTS", *COOKIES,
        "SECURE_HSTS_SECONDS", "MCPHOST_CONFORMANCE", "DATABASES", *TASKS,
    )  # fmt: skip
    database = found.pop("DATABASES")["default"]
    assert database["NAME"] == str(tmp_path / "db.sqlite3")
    assert database["OPTIONS"] == SQLITE
    assert QUEUE not in found.pop("INSTALLED_APPS")
    assert found == {
        "DEBUG": False,
        "MCPHOST_HOST": "127.0.0.1",
        "MCPHOST_PORT": 8000,
        "MCPHOST_HTTPS": False,
        "ALLOWED_HOSTS": ["localhost", "127.0.0.1", "[::1]"],
        "SESSION_COOKIE_SECURE": False,
        "CSRF_COOKIE_SECURE": False,
        "SECURE_HSTS_SECONDS": 0,
        "MCPHOST_CONFORMANCE": False,
        "MCPHOST_TASK_ENGINE": "embedded",
        "MCPHOST_TASK_WORKER_IN_SERVER": True,
    }


def test_other_hosts_get_secure_cookies_and_postgresql_gets_the_task_queue(tmp_path):
    found = load(
        tmp_path,
        *COOKIES, "SECURE_HSTS_SECONDS", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "DATABASES", *TASKS,
        HOST="0.0.0.0", MCPHOST_HSTS_SECONDS="3600",
        MCPHOST_ALLOWED_HOSTS=" a.example , b.example,,",
        MCPHOST_TRUSTED_ORIGINS="https://a.example",
        DATABASE_URL="postgres://app:pw@db.example:5433/mcphost",
    )  # fmt: skip
    database = found.pop("DATABASES")["default"]
    assert database["ENGINE"] == "django.db.backends.postgresql"
    assert (database["HOST"], database["PORT"], database["NAME"]) == ("db.example", 5433, "mcphost")
    assert QUEUE in found.pop("INSTALLED_APPS")
    assert found == {
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SECURE_HSTS_SECONDS": 3600,
        "ALLOWED_HOSTS": ["a.example", "b.example"],
        "CSRF_TRUSTED_ORIGINS": ["https://a.example"],
        "MCPHOST_TASK_ENGINE": "procrastinate",
        "MCPHOST_TASK_WORKER_IN_SERVER": True,
    }


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense://app:hunter2@db/x", "is invalid"),
        ("mysql://app:hunter2@db/x", "must name PostgreSQL or SQLite"),
    ],
)
def test_an_unusable_database_url_is_refused_without_its_password(url, words):
    with pytest.raises(ImproperlyConfigured) as refusal:
        settings._database(url, Path("unused"))
    assert "DATABASE_URL" in str(refusal.value)
    assert words in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "eighty"),
        ("MCPHOST_BODY_LIMIT", "0"),
        ("MCPHOST_LOG_FORMAT", "xml"),
        ("MCPHOST_FEED_SECONDS", "-1"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_its_variable(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ImproperlyConfigured, match=rf"{variable} is '{value}': "):
        settings._environment()


@pytest.mark.parametrize("value", ["canary-canary", "a canary with spaces"])
def test_a_bad_secret_is_refused_without_being_shown(monkeypatch, value):
    monkeypatch.setenv("MCPHOST_METRICS_TOKEN", value)
    with pytest.raises(
        ImproperlyConfigured, match="MCPHOST_METRICS_TOKEN is not shown: "
    ) as refusal:
        settings._environment()
    assert "canary" not in str(refusal.value)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("mcp.example.com", False),
    ],
)
def test_only_loopback_hosts_count_as_loopback(monkeypatch, host, loopback):
    monkeypatch.setenv("HOST", host)
    assert Environment().is_loopback() is loopback


def test_the_task_queue_needs_postgresql(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        load(tmp_path, "MCPHOST_TASK_ENGINE", MCPHOST_TASK_ENGINE="procrastinate")
    assert "needs PostgreSQL (DATABASE_URL)" in refused.value.stderr


EMAIL = ("MCPHOST_SENDS_EMAIL", "EMAIL_BACKEND", "EMAIL_HOST", "EMAIL_PORT", "EMAIL_HOST_USER")
WAYS = ("EMAIL_HOST_PASSWORD", "EMAIL_USE_TLS", "EMAIL_USE_SSL", "DEFAULT_FROM_EMAIL")


def test_without_a_mail_server_no_email_is_sent(tmp_path):
    found = load(tmp_path, *EMAIL)
    assert (found["MCPHOST_SENDS_EMAIL"], found["EMAIL_HOST"]) == (False, "")
    assert found["EMAIL_BACKEND"].endswith("dummy.EmailBackend")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "smtp+tls://m%40x:p%2Fw@mail.example:2525",
            ["mail.example", 2525, "m@x", "p/w", True, False],
        ),
        ("smtp+tls://mail.example", ["mail.example", 587, "", "", True, False]),
        ("smtps://u:p@mail.example", ["mail.example", 465, "u", "p", False, True]),
        ("smtp://127.0.0.1", ["127.0.0.1", 25, "", "", False, False]),
    ],
)
def test_the_url_of_a_mail_server_is_read(tmp_path, url, expected):
    sender = "mcphost <a@mcphost.example>"
    found = load(tmp_path, *EMAIL, *WAYS, MCPHOST_SMTP_URL=url, MCPHOST_EMAIL_FROM=sender)
    assert found.pop("MCPHOST_SENDS_EMAIL") is True
    assert found.pop("EMAIL_BACKEND").endswith("smtp.EmailBackend")
    assert list(found.values()) == [*expected, sender]


@pytest.mark.parametrize(
    ("url", "sender"),
    [
        ("smtp://u:hush@mail.example", ""),
        ("mail.example:hush", "a@x.example"),
        ("smtp://u:hush@mail.example:99999", "a@x.example"),
        ("smtp://u:hush@mail.example", "hush"),
    ],
)
def test_wrong_settings_for_email_are_refused_without_the_password(tmp_path, url, sender):
    with pytest.raises(subprocess.CalledProcessError) as refused:
        load(tmp_path, MCPHOST_SMTP_URL=url, MCPHOST_EMAIL_FROM=sender)
    message = refused.value.stderr.strip().splitlines()[-1]
    assert "MCPHOST_SMTP_URL" in message or "MCPHOST_EMAIL_FROM" in message
    assert "u:hush" not in message
    assert "example:hush" not in message
