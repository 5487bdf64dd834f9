"""Tests of versions: notes, rolling back, archiving, deleting, and edits based on an old copy."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import (
    InvalidPrimitiveError,
    NotDeletableError,
    StaleError,
    UnchangedError,
    UnknownError,
    WrongStateError,
)
from mcphost.catalogue.fields import fingerprint
from mcphost.catalogue.models import MAX_NOTE, Grant, Primitive, PrimitiveVersion
from mcphost.catalogue.rows import VersionRow
from tests.catalogue.memory_kind import ACTOR, fields

pytestmark = pytest.mark.django_db


@pytest.fixture
def tool(acme: UUID) -> UUID:
    """A tool with two versions, of which the second is served."""
    made = services.create(acme, fields(title="First"), ACTOR).id
    services.publish(made, ACTOR, note=" the beginning\n")
    services.update(made, fields(title="Second"), ACTOR)
    services.publish(made, ACTOR)
    return made


def served_title(tenant: UUID) -> Any:
    (snapshot,) = selectors.offering(tenant).tools
    return snapshot.listing["title"]


def first_of(tool: UUID) -> VersionRow:
    return selectors.versions(tool)[-1]


def last_entry() -> Entry:
    found = Entry.objects.order_by("-id").first()
    assert found is not None
    return found


@pytest.mark.parametrize("note", ["x" * (MAX_NOTE + 1), "a\0b", "a\x1bb"])
def test_an_invalid_note_stops_the_publication(tool: UUID, note: str):
    services.update(tool, fields(title="Third"), ACTOR)
    with pytest.raises(InvalidPrimitiveError) as refusal:
        services.publish(tool, ACTOR, note=note)
    assert list(refusal.value.problems) == ["note"]
    assert len(selectors.versions(tool)) == 2


def test_rolling_back_serves_an_earlier_version_and_keeps_the_working_copy(acme: UUID, tool: UUID):
    first = first_of(tool)
    row = services.roll_back(tool, first.id, ACTOR, note="worse than before")
    assert (row.version, row.edited, row.fields.title) == (first.label, True, "Second")
    assert served_title(acme) == "First"
    entry = last_entry()
    assert (entry.action, entry.facts["version"]) == ("tool.rolled_back", first.label)
    assert entry.facts["instead_of"].startswith("2+")
    assert entry.facts["note"] == "worse than before"
    # The next publication is a version of its own, above all others.
    assert services.publish(tool, ACTOR).version.startswith("3+")


def test_rolling_back_replaces_only_the_version_that_the_user_saw_served(tool: UUID) -> None:
    first, second = first_of(tool), selectors.versions(tool)[0]
    services.update(tool, fields(title="Third"), ACTOR)
    third = services.publish(tool, ACTOR)
    with pytest.raises(StaleError):
        services.roll_back(tool, first.id, ACTOR, instead_of=second.label)
    assert selectors.primitive(tool) == third
    assert (
        services.roll_back(tool, first.id, ACTOR, instead_of=third.version).version == first.label
    )
    with pytest.raises(UnchangedError):  # sent twice, which is no conflict
        services.roll_back(tool, first.id, ACTOR, instead_of=third.version)


def test_rolling_back_to_the_served_or_an_unknown_or_ungranted_version_is_refused(acme, tool):
    with pytest.raises(UnchangedError):
        services.roll_back(tool, selectors.versions(tool)[0].id, ACTOR)
    other = services.create(acme, fields("demo.add"), ACTOR).id
    services.publish(other, ACTOR)
    for version in (uuid4(), selectors.versions(other)[0].id):
        with pytest.raises(UnknownError):
            services.roll_back(tool, version, ACTOR)
    Grant.objects.filter(tenant=acme).delete()
    with pytest.raises(InvalidPrimitiveError):
        services.roll_back(tool, first_of(tool).id, ACTOR)
    assert (selectors.primitive(tool) or pytest.fail()).version.startswith("2+")


def test_drafts_and_archived_tools_can_be_deleted_and_their_records_remain(acme: UUID, tool: UUID):
    draft = services.create(acme, fields("demo.add"), ACTOR).id
    services.delete(draft, ACTOR)
    with pytest.raises(NotDeletableError, match="archive it"):
        services.delete(tool, ACTOR)
    services.archive(tool, ACTOR)
    with pytest.raises(WrongStateError):
        services.roll_back(tool, first_of(tool).id, ACTOR)
    services.delete(tool, ACTOR)
    connection.check_constraints()
    assert not Primitive.objects.exists()
    assert not PrimitiveVersion.objects.exists()
    entry = last_entry()
    assert (entry.action, entry.target, entry.facts) == (
        "tool.deleted",
        "echo",
        {"kind": "python", "versions": 2},
    )
    assert Entry.objects.filter(action="tool.published").count() == 2
    services.create(acme, fields(), ACTOR)  # the name is free


def test_a_working_copy_that_changed_since_it_was_reviewed_is_not_published(tool: UUID) -> None:
    services.update(tool, fields(title="Reviewed"), ACTOR)
    reviewed = selectors.primitive(tool)
    services.update(tool, fields(title="Later"), ACTOR)
    before = Entry.objects.count(), PrimitiveVersion.objects.count()
    with pytest.raises(StaleError, match="changed meanwhile"):
        services.publish(tool, ACTOR, based_on=reviewed.fingerprint)
    assert (Entry.objects.count(), PrimitiveVersion.objects.count()) == before
    services.update(tool, fields(title="Reviewed"), ACTOR)
    services.publish(tool, ACTOR, based_on=reviewed.fingerprint)


def test_an_edit_of_an_older_working_copy_is_refused(tool: UUID) -> None:
    row = selectors.primitive(tool)
    read = fingerprint(row.fields)
    services.update(tool, fields(title="Third"), ACTOR, based_on=read)
    with pytest.raises(StaleError, match="changed meanwhile"):
        services.update(tool, fields(title="Fourth"), ACTOR, based_on=read)
    now = selectors.primitive(tool)
    assert now.fields.title == "Third"
    # Publishing changes no working copy, so it is no conflict.
    services.publish(tool, ACTOR)
    services.update(tool, fields(title="Fourth"), ACTOR, based_on=fingerprint(now.fields))
