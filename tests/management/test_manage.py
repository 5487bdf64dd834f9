"""Tests of what `manage.py` does before it runs a command."""

import gc
import sys

import pytest

import manage


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
