"""Fixtures for all tests."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from django.db import connection
from django.utils.module_loading import autodiscover_modules
from pytest_django import DjangoDbBlocker

from mcphost.calls.sessions import session_uses
from mcphost.feed.loop import loop
from mcphost.identity.last_use import last_use
from mcphost.observability.availability import availability
from tests.cast import Cast, build_cast
from tests.keeping import Kept

Elsewhere = Callable[[], AbstractContextManager[None]]
CAST = Kept(build_cast)
OTHERS_AWAY = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="session", autouse=True)
def _wired() -> None:
    """Register ports and subscribe caches to the change log, as in a started process."""
    autodiscover_modules("wiring")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Let the database be dropped even if threads still use it at the end."""
    yield
    with django_db_blocker.unblock():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(OTHERS_AWAY)


@pytest.fixture(autouse=True)
def _nothing_remembered(_wired: None) -> Iterator[None]:
    """Clear all that earlier tests cached: everything that a gap in the change log drops.

    So every cache of database content must use `loop.on_gap`, which it must do anyway.
    """
    _drop_everything()
    yield
    availability.forget()
    _drop_everything()


@pytest.fixture
def cast(db: None) -> Cast:
    """The fixed cast (tests/cast.py), as if it had just been created."""
    return CAST.put()


@pytest.fixture
def elsewhere(db: None, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """`with elsewhere():` commits inside the block are as if made by another process.

    This process gets no notice of them: the test polls the change log by hand (`loop.poll()`).
    Only for tests with `django_db(transaction=True)`.
    """

    @contextmanager
    def another_process() -> Iterator[None]:
        loop.poll()
        with monkeypatch.context() as patch:
            patch.setattr(loop, "poll", lambda: True)
            yield

    return another_process


def _drop_everything() -> None:
    for drop in tuple(loop._gap_callbacks):
        drop()
    last_use.forget_all()
    session_uses.forget_all()
