"""Tests of filters that are saved at the same moment."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from mcphost.console.models import SavedFilter
from mcphost.console.records import filter_store
from mcphost.console.records.filter_store import FilterFields
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.models import Tenant
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 30
SESSIONS = 4


def test_sessions_that_save_at_once_do_not_exceed_the_most(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_store, "MOST_OWN", 2)
    tenant, user = Tenant.objects.get(slug="acme"), cast.auditor.user
    ready = threading.Barrier(SESSIONS)

    def save(number: int) -> bool:
        try:
            ready.wait(SECONDS)
            fields = FilterFields(f"Number {number}", shared=False)
            return bool(filter_store.save(user, tenant, fields, "tool=echo"))
        except InvalidError:
            return False
        finally:
            connections.close_all()

    with ThreadPoolExecutor(SESSIONS) as pool:
        saved = list(pool.map(save, range(SESSIONS)))
    assert sum(saved) == 2
    assert SavedFilter.objects.filter(author=user.pk).count() == 2
