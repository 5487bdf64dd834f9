"""Tests of concurrent verbs: they are atomic and serialized, on both databases."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import InvalidPrimitiveError, UnchangedError, WrongStateError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive
from mcphost.tenants.errors import InvalidError
from mcphost.vault.secrets.selectors import tenant_secrets
from mcphost.vault.secrets.services import delete_secret
from tests.catalogue.memory_kind import ACTOR, fields
from tests.vault.parallel_threads import at_once as in_threads
from tests.vault.secrets.tenant_secret import NAME, stored

pytestmark = pytest.mark.django_db(transaction=True)
PEOPLE = 4


def at_once(verb: Callable[[], Any], people: int = PEOPLE) -> list[Any]:
    """Return the results of `verb`, or its errors, for four threads that start together."""

    def one() -> Any:
        try:
            return verb()
        except (InvalidPrimitiveError, InvalidError, UnchangedError, WrongStateError) as error:
            return error

    return in_threads(one, people)


def test_one_of_several_concurrent_changes_of_a_tool_succeeds(acme: UUID, globex: UUID) -> None:
    tool = services.create(acme, fields(), ACTOR).id
    outcomes = at_once(lambda: services.publish(tool, ACTOR))
    assert sum(isinstance(outcome, UnchangedError) for outcome in outcomes) == PEOPLE - 1
    (version,) = selectors.versions(tool)
    assert (version.number, version.live) == (1, True)
    outcomes = at_once(lambda: services.disable(tool, ACTOR))
    assert sum(isinstance(outcome, WrongStateError) for outcome in outcomes) == PEOPLE - 1
    last = Entry.objects.latest("id").id
    outcomes = at_once(lambda: services.grant_function(globex, "demo.echo", ACTOR))
    assert sorted(outcomes) == [False] * (PEOPLE - 1) + [True]
    assert Entry.objects.filter(id__gt=last).count() == 1
    for action in ("tool.published", "tool.disabled"):
        assert Entry.objects.filter(action=action).count() == 1


def test_one_of_several_concurrent_creations_gets_the_name(acme: UUID) -> None:
    outcomes = at_once(lambda: services.create(acme, fields(), ACTOR))
    refused = [outcome for outcome in outcomes if isinstance(outcome, InvalidPrimitiveError)]
    assert len(refused) == PEOPLE - 1
    assert all(list(refusal.problems) == ["name"] for refusal in refused)


@pytest.mark.parametrize("number", range(4))
def test_a_secret_is_not_deleted_while_a_tool_that_uses_it_is_being_published(
    acme: UUID, number: int
) -> None:
    secret = stored(acme)
    request = {"url": "https://api.example.com/", "headers": [{"name": "X-Key"}]}
    request["headers"][0]["value"] = f"{{secrets.{NAME}}}"  # type: ignore[index]
    drawn = PrimitiveFields("order", {"request": request}, kind="http", description="Reads.")
    tool = services.create(acme, drawn, ACTOR).id
    verbs = [
        lambda: bool(services.publish(tool, ACTOR)),
        lambda: delete_secret(acme, secret, actor=ACTOR),
    ]
    outcomes = at_once(lambda: verbs.pop()(), 2)
    assert sum(isinstance(each, InvalidPrimitiveError | InvalidError) for each in outcomes) == 1
    (row,) = Primitive.objects.filter(pk=tool)
    assert (row.state == "published") == bool(tenant_secrets(acme))
