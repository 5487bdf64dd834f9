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


def test_it_says_where_everything_is_and_how_to_sign_in() -> None:
    text = WELCOME.text()
    for part in (
        "http://127.0.0.1:8000/admin/   user admin, password a-generated-one",
        "/data/admin-password",
        "user auditor, password another-one",
        "/data/auditor-password",
        "http://127.0.0.1:8000/t/demo/mcp",
        "the-demo-token",
        "/data/demo-token",
    ):
        assert part in text
    text = replace(WELCOME, admin=replace(WELCOME.admin, password="")).text()
    assert "password (changed by you)" in text
    assert "/data/admin-password" in text


def test_what_is_to_be_pasted_can_be_pasted() -> None:
    text = dedent(WELCOME.text())
    (claude,) = re.findall(r"^claude .*$", text, re.MULTILINE)
    assert shlex.split(claude)[-1] == "Authorization: Bearer the-demo-token"
    cursor = text[text.index("\n{") : text.index("\n}") + 2]
    assert json.loads(cursor)["mcpServers"]["demo"]["url"] == WELCOME.url
    program = text[text.index("import asyncio") :]
    assert len(program.strip().splitlines()) == 5
    compile(program, "welcome", "exec")
