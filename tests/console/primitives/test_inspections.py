"""Tests that no save path of the console inspects in a transaction.

On SQLite a transaction keeps all other connections from writing, those of calls too, and a check of
a script may take half a minute.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from mcphost.catalogue import kinds
from mcphost.catalogue.models import Primitive
from mcphost.console.forms.script_part import START
from tests.console.primitives.test_imports import document, imported, with_page
from tests.console.primitives.test_scripts import NEW, TOOLS, form
from tests.console.things import Things

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("jobs_here")]

Look = Callable[[Mapping[str, Any], str], Mapping[str, list[str]]]


@pytest.fixture
def inspections(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each inspection: whether it ran in a transaction."""
    seen: list[bool] = []

    def watched(look: Look) -> Look:
        def inspect(config: Mapping[str, Any], tenant: str) -> Mapping[str, list[str]]:
            seen.append(connection.in_atomic_block)
            return look(config, tenant)

        return inspect

    for kind, look in list(kinds.INSPECTED.items()):
        monkeypatch.setitem(kinds.INSPECTED, kind, watched(look))  # type: ignore[arg-type]
    return seen


def test_saving_and_publishing_a_script(
    operator: Client, acme: Things, inspections: list[bool]
) -> None:
    operator.post(NEW, form(_publish=""))
    operator.post(NEW, form(name="other"))
    found = Primitive.objects.filter(tenant=acme.tenant, kind="script")
    published, draft = found.get(name="greet"), found.get(name="other")
    assert (published.state, draft.state) == ("published", "draft")
    changed = START.replace("Hello", "Bye")
    for tool, more in ((published, {}), (draft, {"_publish": ""})):
        url = f"{TOOLS}{tool.id}/edit/"
        assert operator.post(url, form(name=tool.name, code=changed, **more)).status_code == 302
    assert inspections == [False] * 4


def test_importing_operations_and_their_changes(
    operator: Client, acme: Things, inspections: list[bool]
) -> None:
    assert imported(operator, "GET /orders", "POST /orders", text=document()).status_code == 302
    assert imported(operator, "GET /orders", text=with_page()).status_code == 302
    assert inspections == [False] * 3
