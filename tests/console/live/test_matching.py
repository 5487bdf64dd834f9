"""Tests that live lists choose the calls that the list itself shows, for each filter."""

from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.http import urlencode
from pytest_django import DjangoAssertNumQueries

from mcphost.audit import call_list
from mcphost.audit.selectors import EntryFilter
from mcphost.console.live.views import LiveView, News, matches, messages
from mcphost.console.records.filters import RecordFilter
from tests.audit.asking import Story, keep
from tests.console.things import Things, asking, recorded, told

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"target": "deploy"},
        {"outcome": "complete"},
        {"outcome": "open"},
        {"outcome": "tool_error"},
        {"questions": "asked"},
        {"questions": "accept"},
        {"questions": "decline"},
        {"questions": "refused"},
        {"questions": "unasked"},
        {"principal": "OLGA"},
        {"principal": "nobody"},
        {"client": "insp"},
        {"call": "-"},
        {"call": "xyz"},
        {"call": "0"},
        {"trace": "0af7651916cd43dd8448eb211c80319c"},
        {"words": "host answer"},
        {"words": "host nothing"},
    ],
)
def test_a_filter_chooses_the_same_live(
    acme: Things, globex: Things, chosen: dict[str, str]
) -> None:
    now = timezone.now()
    told(asking(acme), asking(globex))
    done = Story.of(acme.tenant, "deploy", at=now - timedelta(minutes=3))
    done.ask("sure")
    done.back().answer("sure", "decline")
    done.end("tool_error", "the Host did not answer")
    refused = Story.of(acme.tenant, "deploy", at=now - timedelta(minutes=2))
    refused.ask("sure")
    refused.refuse("expired")
    keep(done, refused)
    recorded(acme.tenant, done.call.id.__class__(int=7), client_name="Inspector")
    for extra in ({}, {"since": now - timedelta(minutes=4)}, {"until": now - timedelta(minutes=4)}):
        wanted = EntryFilter(frozenset({acme.tenant}), **chosen, **extra)
        listed = call_list.calls(wanted, now).calls
        everything = call_list.calls(EntryFilter(None), now).calls
        ids = [each.entry.call for each in everything if each.entry.call is not None]
        found = [
            each
            for each in call_list.listed(ids, now)
            if matches(each, wanted, partial(call_list.unasked, ids))
        ]
        assert [each.entry.call for each in found] == [each.entry.call for each in listed]


def test_a_turn_reads_as_often_for_many_lists_and_calls_as_for_one(
    acme: Things, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    now = timezone.now()

    def read(many: int) -> tuple[frozenset[UUID], list[LiveView]]:
        stories = [Story.of(acme.tenant, "deploy", at=now) for _ in range(many)]
        for each in stories:
            each.ask("sure")
            each.back().answer("sure", "decline")
            each.end("complete")
        keep(*stories)
        fields = [{"questions": "unasked", "target": f"{at}"} for at in range(many)]
        views = [
            LiveView(frozenset({acme.tenant}), RecordFilter.of(QueryDict(urlencode(each))), False)
            for each in fields
        ]
        return frozenset(each.call.id for each in stories), views

    calls, views = read(1)
    with CaptureQueriesContext(connection) as one:
        messages(News(calls, 1), views, now)
    calls, views = read(20)
    with django_assert_num_queries(len(one)):
        messages(News(calls, 1), views, now)
