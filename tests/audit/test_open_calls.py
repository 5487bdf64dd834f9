"""How many calls wait for an answer under each key."""

import re
from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from mcphost.audit.models import Entry
from mcphost.audit.open_calls import calls_by_key, lost_by_key
from mcphost.audit.records import QUESTION_ASKED, Actor, new_id
from mcphost.audit.services import record
from tests.audit.waiting import asked, ended

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def counted() -> Mapping[str, int]:
    return calls_by_key(timezone.now(), DAY)


def test_nothing_is_in_flight_at_first() -> None:
    assert counted() == {}


def test_calls_that_wait_are_counted_by_the_key_of_their_latest_round(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    asked("k1")
    again = asked("k1")
    asked("k2", call=again, number=2)
    asked("k2")
    with django_assert_num_queries(2):
        assert counted() == {"k1": 1, "k2": 2}


def test_what_a_key_lost_is_counted_as_lost_and_not_as_in_flight() -> None:
    asked("k1", lives=-1)
    asked("k1")
    asked("k2")
    ended(asked("k1"), 2)
    record("key.retired", actor=Actor.system(), target="k1", facts={"expired": False})
    asked("k2")
    assert counted() == {"k2": 2}
    assert lost_by_key(DAY) == {"k1": 1}


def test_what_a_key_lost_stays_the_same_whatever_becomes_of_the_calls() -> None:
    ends, goes_on, cancelled, _ = (asked("k1") for _ in range(4))
    record("key.retired", actor=Actor.system(), target="k1", facts={"expired": False})
    assert lost_by_key(DAY) == {"k1": 4}
    ended(ends, 2)
    asked("k2", call=goes_on, number=2)
    ended(cancelled, 1)
    asked("k1")
    assert lost_by_key(DAY) == {"k1": 4}


def test_what_a_key_lost_is_read_up_to_its_loss_only() -> None:
    asked("k1")
    record("key.retired", actor=Actor.system(), target="k1", facts={"expired": False})
    with CaptureQueriesContext(connection) as captured:
        assert lost_by_key(DAY) == {"k1": 1}
    (counting,) = (each["sql"] for each in captured if "COUNT" in each["sql"])
    assert re.search(r'"audit_entry"."id" < ', counting)


def test_a_key_that_retired_by_itself_lost_nothing() -> None:
    asked("k1", lives=-1)
    record("key.retired", actor=Actor.system(), target="k1", facts={"expired": True})
    assert lost_by_key(DAY) == {}


def test_a_call_that_went_on_is_not_in_flight() -> None:
    call = asked("k1")
    ended(call, 2)
    assert counted() == {}


def test_a_question_that_expired_is_not_in_flight() -> None:
    asked("k1", lives=-1)
    assert counted() == {}


def test_a_question_that_expired_in_an_earlier_round_does_not_hide_a_later_one() -> None:
    call = asked("k1", lives=-1)
    asked("k2", call=call, number=2)
    assert counted() == {"k2": 1}


def test_what_is_older_than_any_question_may_be_is_not_looked_at() -> None:
    asked("k1")
    assert calls_by_key(timezone.now() + DAY, DAY) == {}
    assert calls_by_key(timezone.now() + timedelta(days=2), timedelta(days=3)) == {}


def test_other_entries_of_that_outcome_are_no_rounds() -> None:
    Entry.objects.create(
        id=new_id(),
        at=timezone.now(),
        action=QUESTION_ASKED,
        actor_kind="token",
        outcome="input_required",
        facts={"sealed_by": "k1", "expires_at": "9999"},
    )
    assert counted() == {}


def test_a_call_that_has_its_result_is_not_in_flight_whatever_was_asked_again() -> None:
    call = asked("k1")
    asked("k1", call=call, number=3)
    ended(call, 2)
    assert counted() == {}


def test_a_round_that_asked_in_several_runs_is_one_call_in_flight() -> None:
    call = asked("k1")
    for _ in range(2):
        asked("k1", call=call, number=2)
    assert counted() == {"k1": 1}
