"""Tests of setting up a tenant's tools by a command."""

from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.seeding import publish_functions
from mcphost.feed.models import Change
from tests.catalogue.memory_kind import ACTOR, fields

pytestmark = pytest.mark.django_db
REFERENCES = ("demo.echo", "demo.add")


def test_seeding_the_same_functions_again_changes_nothing(globex: UUID) -> None:
    publish_functions(globex, REFERENCES, ACTOR)
    offering = selectors.offering(globex)
    traces = Entry.objects.count(), Change.objects.count()
    assert publish_functions(globex, REFERENCES, ACTOR) == ()
    assert (Entry.objects.count(), Change.objects.count()) == traces
    assert selectors.offering(globex) == offering


def test_seeding_keeps_the_changes_of_operators(globex: UUID) -> None:
    (row,) = publish_functions(globex, ["demo.echo"], ACTOR)
    services.update(row.id, fields(title="Parrot"), ACTOR)
    disabled = services.disable(row.id, ACTOR)
    publish_functions(globex, REFERENCES, ACTOR)
    assert selectors.primitive(row.id) == disabled


def test_seeding_with_an_unknown_function_changes_nothing(globex: UUID) -> None:
    with pytest.raises(InvalidPrimitiveError):
        publish_functions(globex, ["demo.echo", "demo.nothing"], ACTOR)
    assert selectors.offering(globex).tools == ()
    assert not any(row.granted for row in selectors.functions(globex))
