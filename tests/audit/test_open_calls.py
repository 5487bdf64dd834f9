"""How many calls wait for an answer under each key."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.open_calls import calls_by_key, lost_by_key
from mcphost.audit.records import QUESTION_ASKED, Actor, new_id
from mcphost.audit.services import record
from tests.audit.waiting import asked, ended

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def counted() -> Mapping[str, int]:
    return calls_by_key(timezone.now(), DAY)


def _asked_in_another_action() -> None:
    Entry.objects.create(
        id=new_id(),
        at=timezone.now(),
        action=QUESTION_ASKED,
        actor_kind="token",
        outcome="input_required",
        facts={"sealed_by": "k1", "expires_at": "9999"},
    )


CASES: dict[str, tuple[Callable[[], object], Mapping[str, int]]] = {
    "nothing": (lambda: None, {}),
    "it went on": (lambda: ended(asked("k1"), 2), {}),
    "it expired": (lambda: asked("k1", lives=-1), {}),
    "an earlier round expired": (
        lambda: asked("k2", call=asked("k1", lives=-1), number=2),
        {"k2": 1},
    ),
    "asked again, but it has its result": (
        lambda: ended(asked("k1", call=asked("k1"), number=3), 2),
        {},
    ),
    "a round asked in two runs": (
        lambda: asked("k1", call=asked("k1", call=asked("k1"), number=2), number=2),
        {"k1": 1},
    ),
    "no end of a round": (_asked_in_another_action, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_only_calls_with_an_open_input_request_are_counted_under_their_key(case: str) -> None:
    write, expected = CASES[case]
    write()
    assert counted() == expected


def test_waiting_calls_are_counted_under_the_key_of_their_latest_round(django_assert_num_queries):
    asked("k1")
    again = asked("k1")
    asked("k2", call=again, number=2)
    asked("k2")
    with django_assert_num_queries(2):
        assert counted() == {"k1": 1, "k2": 2}


def test_calls_of_a_retired_key_are_counted_as_lost_and_not_as_in_flight() -> None:
    asked("k1", lives=-1)
    asked("k1")
    asked("k2")
    ended(asked("k1"), 2)
    record("key.retired", actor=Actor.system(), target="k1", facts={"expired": False})
    asked("k2")
    assert counted() == {"k2": 2}
    assert lost_by_key(DAY) == {"k1": 1}


def test_the_number_of_calls_lost_with_a_key_stays_the_same_when_the_calls_change() -> None:
    ends, goes_on, cancelled, _ = (asked("k1") for _ in range(4))
    asked("k3", lives=-1)
    record("key.retired", actor=Actor.system(), target="k1", facts={"expired": False})
    record("key.retired", actor=Actor.system(), target="k3", facts={"expired": True})
    with CaptureQueriesContext(connection) as captured:
        assert lost_by_key(DAY) == {"k1": 4}, "k3 retired by itself"
    (counting,) = (each["sql"] for each in captured if "COUNT" in each["sql"])
    assert re.search(r'"audit_entry"."id" < ', counting), "read up to the loss only"
    ended(ends, 2)
    asked("k2", call=goes_on, number=2)
    ended(cancelled, 1)
    asked("k1")
    assert lost_by_key(DAY) == {"k1": 4}
