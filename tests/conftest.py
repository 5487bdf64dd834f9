"""What every test may use."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from django.db import connection
from django.utils.module_loading import autodiscover_modules
from pytest_django import DjangoDbBlocker

from mcphost.feed.loop import loop
from mcphost.identity.last_use import last_use
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
    """Ports are filled and caches listen to the feed, as in a started process."""
    autodiscover_modules("wiring")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database, which threads that are still at work at the end do not keep from being dropped."""
    yield
    with django_db_blocker.unblock():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(OTHERS_AWAY)


@pytest.fixture(autouse=True)
def _nothing_remembered(_wired: None) -> Iterator[None]:
    """A test sees nothing of the databases of earlier ones: what a gap in the feed drops, goes.

    So whatever keeps anything of the database must listen with `loop.on_gap`, which it must anyway.
    """
    _drop_everything()
    yield
    _drop_everything()


@pytest.fixture
def cast(db: None) -> Cast:
    """The fixed cast (tests/cast.py), as if it had been made a moment ago."""
    return CAST.put()


@pytest.fixture
def elsewhere(db: None, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    """`with elsewhere():` what is committed inside, another process did.

    This one does not hear of it by itself: the test polls the feed by hand (`loop.poll()`). Only
    for tests with `django_db(transaction=True)`.
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
