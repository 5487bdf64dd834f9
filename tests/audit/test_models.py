"""Entries are written once."""

import pytest
from django.db import IntegrityError, models

from mcphost.audit.models import AppendOnlyError, Entry, Payload
from mcphost.audit.records import ROUND_FINISHED, new_id
from mcphost.audit.writer.rows import ENTRY_COLUMNS, PAYLOAD_COLUMNS
from tests.audit.databases import AT

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry() -> Entry:
    return Entry.objects.create(id=new_id(), at=AT, action=ROUND_FINISHED, actor_kind="system")


def test_saving_an_existing_entry_is_refused(entry: Entry) -> None:
    entry.reason = "another"
    with pytest.raises(AppendOnlyError):
        entry.save()
    with pytest.raises(AppendOnlyError):
        Entry.objects.get().save(update_fields=["reason"])
    with pytest.raises(IntegrityError):
        Entry(id=entry.id, at=AT, action="x", actor_kind="system").save()


def test_deleting_or_updating_entries_is_refused(entry: Entry) -> None:
    for attempt in (
        entry.delete,
        Entry.objects.all().delete,
        lambda: Entry.objects.update(reason="x"),
        lambda: Entry._base_manager.update(reason="x"),
        lambda: Entry.objects.bulk_update([entry], ["reason"]),
        lambda: Entry.objects.update_or_create(id=entry.id, defaults={"reason": "x"}),
    ):
        with pytest.raises(AppendOnlyError, match="never changed or deleted"):
            attempt()
    assert Entry.objects.get().reason == ""


@pytest.mark.parametrize(("model", "columns"), [(Entry, ENTRY_COLUMNS), (Payload, PAYLOAD_COLUMNS)])
def test_the_writer_writes_every_column(model: type[models.Model], columns: tuple[str, ...]):
    assert {field.column for field in model._meta.fields} - {"erased_at"} == set(columns)
