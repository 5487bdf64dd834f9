"""Tests that pages read of the database only what they show."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.console.things import Things

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]

TENANT = "/admin/t/acme/"


def statements(client: Client, path: str) -> list[str]:
    """Return the SQL of a page that is loaded for the second time."""
    assert client.get(path).status_code == 200
    with CaptureQueriesContext(connection) as queries:
        client.get(path)
    return [each["sql"] for each in queries]


@pytest.mark.parametrize(
    "path",
    [
        "/admin/",
        TENANT,
        f"{TENANT}calls/",
        f"{TENANT}tasks/",
        f"{TENANT}tokens/new/",
        f"{TENANT}first-steps/",
    ],
)
def test_pages_that_name_or_count_primitives_do_not_read_their_contents(
    owner: Client, path: str
) -> None:
    found = statements(owner, path)
    assert not [each for each in found if '"catalogue_primitive"."config"' in each]


def test_the_tenants_of_the_menu_are_read_without_icons_and_instructions(
    staff: Client, globex: Things
) -> None:
    found = statements(staff, "/admin/keys/")
    tenants = [each for each in found if 'FROM "tenants_tenant"' in each]
    assert tenants
    assert not [each for each in tenants if '"icon"' in each or '"instructions"' in each]


def test_the_pages_of_one_token_do_not_read_the_others(owner: Client, acme: Things) -> None:
    found = statements(owner, f"{TENANT}tokens/{acme.token}/revoke/")
    tokens = [each for each in found if 'FROM "identity_token"' in each]
    assert tokens
    assert all(acme.token in each for each in tokens)
