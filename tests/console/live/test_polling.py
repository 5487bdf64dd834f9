"""Tests of live lists by polling, and that they choose the calls that the list itself shows."""

import json
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.http import urlencode

from mcphost.audit import call_list
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.summaries import selectors
from mcphost.console.live.views import LiveView, matches, messages
from mcphost.console.records.filters import RecordFilter
from mcphost.runtime.call import Delivery
from tests.audit.recorded_calls import Story, keep
from tests.console.live.live_client import ACME, ALL
from tests.console.tenant_data import Things, asking, recorded, told

pytestmark = pytest.mark.django_db


def asked(client: Client, query: str, path: str = ACME) -> Any:
    return json.loads(client.get(f"{path}?{query}").content)


def test_a_poll_returns_changed_calls_and_the_next_cursor(auditor, acme, globex):
    since = selectors.newest()
    assert asked(auditor, f"cursor={since}") == {"cursor": str(since)}
    made = uuid4()
    recorded(acme.tenant, made)
    recorded(globex.tenant, uuid4())
    found = asked(auditor, f"cursor={since}")
    assert [row["call"] for row in found["rows"]] == [str(made)]
    assert asked(auditor, f"cursor={found['cursor']}") == {"cursor": str(selectors.newest())}


def test_a_poll_applies_the_filters_of_the_url(staff: Client, acme: Things, globex: Things) -> None:
    since = selectors.newest()
    recorded(acme.tenant, uuid4(), target="one")
    recorded(globex.tenant, uuid4(), target="two")
    found = asked(staff, f"cursor={since}&tool=two", ALL)
    assert ["two" in row["html"] for row in found["rows"]] == [True]
    assert len(found["gone"]) == 1
    assert asked(staff, f"cursor={since}&tool=two&tenant=acme", ALL)["rows"] == []


def test_an_invalid_cursor_is_refused_with_a_message(auditor: Client, acme: Things) -> None:
    for query in ("", "cursor=x", "cursor=-1"):
        reply = auditor.get(f"{ACME}?{query}")
        assert reply.status_code == 400
        assert "cursor" in reply.json()["error"]


FILTERS: list[dict[str, str]] = [
    {},
    {"target": "deploy"},
    *({"outcome": outcome} for outcome in ("complete", "open", "tool_error")),
    *({"questions": what} for what in ("asked", "accept", "decline", "refused", "unasked")),
    *({"principal": "OLGA"}, {"principal": "nobody"}, {"client": "insp"}),
    *({"call": "-"}, {"call": "xyz"}, {"call": "0"}),
    {"trace": "0af7651916cd43dd8448eb211c80319c"},
    *({"words": "host answer"}, {"words": "host nothing"}),
    *({"outcome": group} for group in call_list.GROUPS),
    *({"made_by": made_by} for made_by in ("clients", "trials")),
    *({"client": f'"{name}"'} for name in ("Inspector", "Inspec", "")),
    *({"principal": f'"{name}"'} for name in ("olga (laptop)", "OLGA (laptop)", "olga")),
]


def test_each_filter_selects_the_same_calls_live_as_in_the_list(
    acme: Things, globex: Things
) -> None:
    now = timezone.now()
    told(asking(acme), asking(globex))
    done = Story.of(acme.tenant, "deploy", at=now - timedelta(minutes=3))
    done.play("ask sure; back; answer sure decline")
    done.end("tool_error", "the Host did not answer")
    refused = Story.of(acme.tenant, "deploy", at=now - timedelta(minutes=2))
    refused.play("ask sure; refuse expired")
    keep(done, refused)
    recorded(acme.tenant, UUID(int=7), client_name="Inspector")
    recorded(acme.tenant, UUID(int=8), delivery=Delivery.PLAYGROUND, outcome="tool_error")
    everything = call_list.calls(EntryFilter(None), now).calls
    ids = [row.entry.call for row in everything if row.entry.call is not None]
    past, chosen = now - timedelta(minutes=4), 0
    for fields in FILTERS:
        for extra in ({}, {"since": past}, {"until": past}):
            entry_filter = EntryFilter(frozenset({acme.tenant}), **fields, **extra)
            listed = call_list.calls(entry_filter, now).calls
            unasked = partial(call_list.unasked, ids)
            live = [
                row
                for row in call_list.listed(ids, now)
                if matches(row, entry_filter, now, unasked)
            ]
            calls = [row.entry.call for row in listed]
            assert [row.entry.call for row in live] == calls, (fields, extra)
            chosen += len(calls)
    assert chosen > len(FILTERS)


def test_the_number_of_queries_does_not_grow_with_live_lists_and_calls(
    acme, django_assert_num_queries
):
    now = timezone.now()

    def read(many: int) -> tuple[frozenset[UUID], list[LiveView]]:
        stories = [Story.of(acme.tenant, "deploy", at=now) for _ in range(many)]
        for each in stories:
            each.play("ask sure; back; answer sure decline; end complete")
        keep(*stories)
        fields = [{"questions": "unasked", "target": f"{at}"} for at in range(many)]
        views = [
            LiveView(frozenset({acme.tenant}), RecordFilter.of(QueryDict(urlencode(each))), False)
            for each in fields
        ]
        return frozenset(each.call.id for each in stories), views

    calls, views = read(1)
    with CaptureQueriesContext(connection) as one:
        messages(selectors.CallChanges(calls, 1), views, now)
    calls, views = read(20)
    with django_assert_num_queries(len(one)):
        messages(selectors.CallChanges(calls, 1), views, now)
