"""Tests of changes of a tenant that is closed after access was checked, and before the change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from mcphost.tenants.models import Membership, Tenant
from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.primitives import test_imports
from tests.console.tenants.test_secrets import NEW_SECRET
from tests.console.things import Things

pytestmark = pytest.mark.django_db

CHANGES = {
    "close/": {"slug": "acme"},
    "settings/": {"title": "Late"},
    "members/": {"username": "newcomer", "role": "operator", "days": "7"},
    "members/{user}/role/": {"role": "operator"},
    "members/{user}/scopes/": {"scopes": []},
    "service-accounts/": {"name": "late"},
    "secrets/new/": NEW_SECRET,
    "secrets/{secret}/rotate/": {"value": "another-value"},
    "secrets/{secret}/edit/": NEW_SECRET,
    "secrets/{secret}/delete/": {"name": "canary_acme_secret"},
    "tools/new/": {"function": "probe.echo", "name": "late"},
}


@contextmanager
def closing(cast: Cast) -> Iterator[None]:
    """Close the tenant when the next service begins its transaction."""

    def close_first(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SAVEPOINT"):
            Tenant.objects.filter(pk=cast.acme.id).update(closed_at=cast.acme.created_at)
        return execute(sql, *rest)

    with connection.execute_wrapper(close_first):
        yield


def is_refused(response: Any) -> bool:
    """Whether the page is that of a tenant that does not exist."""
    context = response.context
    return (response.status_code, context["title"], context["tenant"]) == (403, "No access", None)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_tenant_closed_meanwhile_is_refused_as_of_an_unknown_one(
    cast: Cast, acme: Things, browse: Browser, change: str
) -> None:
    owner = browse(cast.owner)
    path = change.format(user=cast.operator.user.pk, secret=acme.secret)
    unknown = owner.post(f"/admin/t/unknown/{path}", CHANGES[change])
    with closing(cast):
        closed = owner.post(f"/admin/t/acme/{path}", CHANGES[change])
    assert is_refused(unknown)
    assert is_refused(closed)


def test_staff_are_refused_too(cast: Cast, acme: Things, browse: Browser) -> None:
    staff = browse(cast.staff)
    Membership.objects.filter(tenant=cast.acme.id, user=cast.owner.user).delete()
    changes = {
        "members/": {"username": "stranger"},
        "functions/change/": {"verb": "grant", "function": "probe.echo"},
    }
    for path, sent in changes.items():
        Tenant.objects.filter(pk=cast.acme.id).update(closed_at=None)
        with closing(cast):
            assert is_refused(staff.post(f"/admin/t/acme/{path}", sent))


def test_an_import_into_a_tenant_that_was_closed_meanwhile_is_refused(
    cast: Cast, acme: Things, browse: Browser
) -> None:
    operator = browse(cast.operator)
    given = test_imports.listed(operator, test_imports.document())
    with closing(cast):
        chosen = {**given, "chosen": "GET /orders", "_create": ""}
        assert is_refused(operator.post(test_imports.PAGE, chosen))
