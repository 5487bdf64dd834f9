"""Fixtures: browsers of signed-in users, and tenants with data of every type."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import kinds
from mcphost.vault.services import ensure_ring
from tests.cast import Cast, Person
from tests.console.tenant_data import Things, called, furnish
from tests.prepared_rows import KeptOn

Browser = Callable[[Person], Client]


Furnished = dict[str, dict[str, Any]]


def _furnish_acme(cast: Cast) -> Furnished:
    ensure_ring()
    return {"acme": furnish(cast.acme, cast.owner)}


def _furnish_both(cast: Cast) -> Furnished:
    return {**_furnish_acme(cast), "globex": furnish(cast.globex, cast.stranger)}


ACME, BOTH = KeptOn(_furnish_acme), KeptOn(_furnish_both)


@pytest.fixture
def browse() -> Browser:
    """`browse(person)`: a browser in which the person is signed in."""

    def signed_in(person: Person) -> Client:
        client = Client()
        client.force_login(person.user)
        return client

    return signed_in


@pytest.fixture
def furnished(cast: Cast, request: pytest.FixtureRequest) -> Furnished:
    """What the tenants have besides calls: of the stranger's tenant only where a test wants it."""
    kinds.discover()
    return (BOTH if "globex" in request.fixturenames else ACME).put(cast)


@pytest.fixture
def acme(cast: Cast, furnished: Furnished) -> Things:
    """The tenant under test, with a tool, a token, a call with a payload, and changes."""
    return called(cast.acme, furnished["acme"])


@pytest.fixture
def globex(cast: Cast, acme: Things, furnished: Furnished) -> Things:
    """The stranger's tenant, with the same."""
    return called(cast.globex, furnished["globex"])


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
def stranger(cast: Cast, browse: Browser) -> Client:
    return browse(cast.stranger)


@pytest.fixture
def staff(cast: Cast, browse: Browser) -> Client:
    return browse(cast.staff)
