"""Secrets for the serving path: cached while encrypted, dropped when a change is reported."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from mcphost.audit import last_use
from mcphost.feed.cache import MISS, Miss
from mcphost.feed.loop import loop
from mcphost.vault.secrets import selectors
from mcphost.vault.secrets.selectors import cached_secret, load_secret
from mcphost.vault.secrets.services import change_secret, delete_secret, rotate_secret
from mcphost.vault.secrets.values import UsableSecret
from tests.cast import Cast
from tests.vault.secrets.tenant_secret import NAME, OLGA, OTHER, VALUE, stored

pytestmark = pytest.mark.django_db(transaction=True)

CountQueries = Callable[[int], AbstractContextManager[Any]]


@pytest.fixture
def acme(cast: Cast) -> UUID:
    return cast.acme.id


def usable(found: UsableSecret | Miss | None) -> UsableSecret:
    assert isinstance(found, UsableSecret)
    return found


def test_a_secret_changed_by_another_process_is_reloaded_after_the_next_poll(acme, cast, elsewhere):
    secret = stored(acme)
    stored(cast.globex.id)
    for tenant in (acme, cast.globex.id):
        load_secret(tenant, NAME)
    with elsewhere():
        rotate_secret(acme, secret, OTHER, actor=OLGA)
    assert usable(cached_secret(acme, NAME)).reveal() == VALUE
    assert loop.poll()
    assert cached_secret(acme, NAME) is MISS
    assert usable(cached_secret(cast.globex.id, NAME)).reveal() == VALUE
    assert usable(load_secret(acme, NAME)).reveal() == OTHER
    with elsewhere():
        rules = {"hosts": ["b.example.com"], "places": ["body"]}
        change_secret(acme, secret, **rules, actor=OLGA, value=VALUE)
    assert loop.poll()
    assert usable(load_secret(acme, NAME)).hosts == {"b.example.com"}
    with elsewhere():
        delete_secret(acme, secret, actor=OLGA)
    assert loop.poll()
    assert load_secret(acme, NAME) is None


def test_the_last_use_is_noted_when_the_secret_is_read_and_written_later(
    acme, django_assert_num_queries
):
    secret = stored(acme)
    begun = timezone.now()
    found = usable(load_secret(acme, NAME))
    last_use.flush(timezone.now())
    with django_assert_num_queries(0):
        found.reveal()
    (row,) = selectors.tenant_secrets(acme)
    assert row.last_used_at is None
    last_use.flush(timezone.now())
    (row,) = selectors.tenant_secrets(acme)
    assert row.id == secret
    assert row.last_used_at is not None
    assert begun - timedelta(seconds=1) <= row.last_used_at <= timezone.now()
