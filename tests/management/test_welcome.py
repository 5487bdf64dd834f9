"""Tests of the text that a new server prints."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

from mcphost.management.welcome import Account, Welcome

WELCOME = Welcome(
    base="http://127.0.0.1:8000",
    admin=Account("admin", "a-generated-one", Path("/data/admin-password")),
    auditor=Account("auditor", "another-one", Path("/data/auditor-password")),
    token="the-demo-token",
    token_file=Path("/data/demo-token"),
)


def test_without_a_demo_the_text_names_the_console_only() -> None:
    text = replace(WELCOME, token="").text()
    assert "user admin, password a-generated-one" in text
    assert "/t/demo/" not in text


def test_the_commands_and_programs_of_the_welcome_text_are_valid() -> None:
    text = dedent(WELCOME.text())
    (claude,) = re.findall(r"^claude .*$", text, re.MULTILINE)
    assert shlex.split(claude)[-1] == "Authorization: Bearer the-demo-token"
    cursor = text[text.index("\n{") : text.index("\n}") + 2]
    assert json.loads(cursor)["mcpServers"]["demo"]["url"] == WELCOME.url
    program = text[text.index("import asyncio") :]
    assert len(program.strip().splitlines()) == 5
    compile(program, "welcome", "exec")
