"""Tests that snapshots are read once, and cached until the change log reports a change."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.feed.loop import loop
from mcphost.feed.services import announce
from mcphost.tenants import selectors
from mcphost.tenants.models import Tenant
from mcphost.tenants.services import close_tenant, create_tenant, update_tenant
from tests.cast import ACTOR, Cast
from tests.conftest import Elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

CountQueries = Callable[[int], AbstractContextManager[Any]]


def test_unknown_closed_and_private_tenants_are_indistinguishable_even_by_query_count(
    cast: Cast,
) -> None:
    gone = create_tenant("gone", replace(cast.commons.fields, title="Gone"), actor=ACTOR)
    close_tenant(gone.id, actor=ACTOR)
    seen = set()
    for slug in ("nowhere", "gone", "acme", "-not a slug-", "x" * 5000):
        selectors.forget_all()
        with CaptureQueriesContext(connection) as cold:
            assert selectors.public_tenant(slug) is None
        with CaptureQueriesContext(connection) as warm:
            assert selectors.public_tenant(slug) is None
        assert selectors.cached_public_tenant(slug) is None
        seen.add((tuple(q["sql"] for q in cold), tuple(q["sql"] for q in warm)))
    assert len(seen) == 1
    (queries,) = seen
    assert [len(part) for part in queries] == [1, 0]


def test_a_change_by_this_process_applies_at_once(cast: Cast) -> None:
    selectors.tenant(cast.acme.id)
    assert selectors.public_tenant("acme") is None
    update_tenant(cast.acme.id, replace(cast.acme.fields, public=True, title="New"), actor=ACTOR)
    found = selectors.public_tenant("acme")
    assert found is not None
    assert found.title == "New"
    assert selectors.tenant(cast.acme.id) == found


def test_a_change_by_another_process_applies_after_one_poll(
    cast: Cast, elsewhere: Elsewhere
) -> None:
    assert selectors.public_tenant("commons") is not None
    before = selectors.tenant(cast.commons.id)
    with elsewhere(), transaction.atomic():
        Tenant.objects.filter(pk=cast.commons.id).update(closed_at=timezone.now())
        announce("tenant", tenant=cast.commons.id, object_id="commons")
    assert selectors.tenant(cast.commons.id) is before
    loop.poll()
    assert selectors.public_tenant("commons") is None
    after = selectors.tenant(cast.commons.id)
    assert after is not None
    assert not after.open


def test_a_change_that_is_rolled_back_is_not_cached(cast: Cast) -> None:
    class Undone(Exception):  # noqa: N818 - not an error, a way out
        pass

    with pytest.raises(Undone), transaction.atomic():
        update_tenant(cast.acme.id, replace(cast.acme.fields, title="Never"), actor=ACTOR)
        seen = selectors.tenant(cast.acme.id)
        assert seen is not None
        assert seen.title == "Never"
        raise Undone
    assert selectors.tenant(cast.acme.id) == cast.acme
