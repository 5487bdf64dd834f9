"""Tests of what `manage.py` does before it runs a command."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import manage

APPS = (
    "import sys; import django; django.setup(); from django.core.management import get_commands; "
    "print('daphne.server' in sys.modules, get_commands()['runserver'])"
)


def test_garbage_is_looked_for_seldom_while_a_command_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    monkeypatch.setattr(sys, "argv", ["manage.py", "version"])
    try:
        manage.main()
        assert gc.get_threshold()[0] > 10_000
    finally:
        gc.set_threshold(*before)
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "loaded"),
    [("serve", "False django.contrib.staticfiles"), ("runserver", "True daphne")],
)
def test_daphne_is_loaded_for_the_command_that_runs_it(
    command: str, loaded: str, tmp_path: Path
) -> None:
    given = {
        "DJANGO_SETTINGS_MODULE": "mcphost.settings",
        "MCPHOST_HOME": str(tmp_path),
        "MCPHOST_SECRET_KEY": "x" * 50,
    }
    told = subprocess.run(
        [sys.executable, "-c", APPS, command],
        env={**os.environ, **given},
        cwd=Path(manage.__file__).parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert told.stdout.strip() == loaded
