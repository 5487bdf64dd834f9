"""Fixtures: browsers of signed-in users, and tenants with data of every type."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import kinds
from mcphost.vault.services import ensure_ring
from tests.cast import Cast, Person
from tests.console.things import Things, called, fill, furnish
from tests.keeping import KeptOn

Browser = Callable[[Person], Client]


def _furnish_acme(cast: Cast) -> dict[str, Any]:
    ensure_ring()
    return furnish(cast.acme, cast.owner)


ACME = KeptOn(_furnish_acme)


@pytest.fixture
def browse() -> Browser:
    """`browse(person)`: a browser in which the person is signed in."""

    def signed_in(person: Person) -> Client:
        client = Client()
        client.force_login(person.user)
        return client

    return signed_in


@pytest.fixture
def acme(cast: Cast) -> Things:
    """The tenant under test, with a tool, a token, a call with a payload, and changes."""
    kinds.discover()
    return called(cast.acme, ACME.put(cast))


@pytest.fixture
def globex(cast: Cast, acme: Things) -> Things:
    """The stranger's tenant, with the same."""
    return fill(cast.globex, cast.stranger)


@pytest.fixture
def owner(cast: Cast, browse: Browser) -> Client:
    return browse(cast.owner)


@pytest.fixture
def operator(cast: Cast, browse: Browser) -> Client:
    return browse(cast.operator)


@pytest.fixture
def auditor(cast: Cast, browse: Browser) -> Client:
    return browse(cast.auditor)


@pytest.fixture
def staff(cast: Cast, browse: Browser) -> Client:
    return browse(cast.staff)
