"""A process is killed while it writes: acknowledged records are stored, and none is incomplete."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

ROOT = Path(settings.BASE)
COUNT = 1000


def start_recording(home: Path) -> "subprocess.Popen[str]":
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "mcphost.settings",
        "MCPHOST_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": "",
    }
    command = [sys.executable, "-m", "tests.audit.acknowledged_records"]
    if connection.vendor == "postgresql":
        there = connection.settings_dict
        where = f"{there['HOST']}:{there['PORT'] or 5432}/{there['NAME']}"
        environment["DATABASE_URL"] = f"postgres://{there['USER']}:{there['PASSWORD']}@{where}"
    else:
        command.append("--migrate")
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def kill_after(process: "subprocess.Popen[str]", count: int) -> set[UUID]:
    """Kill the process once it has acknowledged `count` records; return all of those."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(count)]
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait(20)
    process.stdout.close()
    return {UUID(line.strip()) for line in lines if line.endswith("\n") and len(line) == 37}


def found(home: Path) -> tuple[set[UUID], set[UUID], int]:
    """The ids of all entries, those of all payloads, and how many entries have a payload."""
    queries = (
        "SELECT id FROM audit_entry",
        "SELECT entry FROM audit_payload",
        "SELECT id FROM audit_entry WHERE action = 'b'",
    )
    if connection.vendor == "postgresql":
        rows = [_fetch(query) for query in queries]
    else:
        file = sqlite3.connect(home / "db.sqlite3")
        rows = [file.execute(query).fetchall() for query in queries]
        file.close()
    entries, payloads, payload_entries = ({UUID(str(row[0])) for row in each} for each in rows)
    assert payloads == payload_entries
    return entries, payloads, len(payload_entries)


def _fetch(query: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_records_acknowledged_before_a_kill_are_in_the_database(tmp_path: Path) -> None:
    acknowledged = kill_after(start_recording(tmp_path), COUNT)
    entries, payloads, with_payload = found(tmp_path)
    assert len(acknowledged) >= COUNT
    assert acknowledged <= entries
    assert len(entries) == 2 * with_payload == 2 * len(payloads), "a job lands whole or not at all"
