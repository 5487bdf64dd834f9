"""Rows in the form of each database."""

from datetime import timedelta, timezone
from uuid import uuid4

import orjson
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.dummy.base import DatabaseWrapper

from mcphost.audit.writer import sinks
from mcphost.audit.writer.rows import ENTRY_COLUMNS, PAYLOAD_COLUMNS, prepare
from tests.audit.databases import AT, record


def test_an_unknown_database_is_refused_with_its_name() -> None:
    with pytest.raises(ImproperlyConfigured, match="unknown"):
        sinks.sink(DatabaseWrapper({}))


def test_postgresql_gets_json_with_bytes_as_base64() -> None:
    tenant = uuid4()
    row = prepare(record(tenant=tenant, payload={"a": 1}, facts={"n": 1}))
    entry = orjson.loads(sinks._json([sinks._postgres_entry(row)]))[0]
    assert tuple(entry) == ENTRY_COLUMNS
    assert (entry["tenant"], entry["facts"]) == (str(tenant), {"n": 1})
    assert len(entry["commitment"]) == 44
    payload = orjson.loads(sinks._json([sinks._postgres_payload(row)]))[0]
    assert tuple(payload) == PAYLOAD_COLUMNS
    assert payload["entry"] == str(row.record.id)
    assert sinks._postgres_entry(prepare(record()))["commitment"] is None


def test_sqlite_gets_utc_as_django_writes_it_and_ids_as_hexadecimal() -> None:
    there = record(at=AT.astimezone(timezone(timedelta(hours=-3))))
    ((_, entry),) = sinks._sqlite_inserts([prepare(there)])
    values = dict(zip(ENTRY_COLUMNS, entry, strict=True))
    assert (values["at"], values["id"]) == ("2026-01-02 03:04:05.678901", there.id.hex)
    assert values["facts"] == "{}"


def test_sqlite_gets_few_statements_of_few_sizes() -> None:
    rows = [("x",)] * 70
    statements = sinks._sqlite_statements("t", ("a",), rows)
    assert [len(values) for _, values in statements] == [32, 32, 6]
    assert statements[0][0] is statements[1][0]
    assert statements[2][0].count("(?)") == 6
    assert sinks._sqlite_statements("t", ("a",), []) == []
