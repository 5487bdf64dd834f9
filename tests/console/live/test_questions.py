"""The live list of questions: rows of questions whose call changed, filtered and rendered as the page does."""

import json
from dataclasses import replace

import pytest
from django.http import QueryDict
from django.test import Client
from django.utils import timezone

from mcphost.audit.summaries.selectors import changed, newest
from mcphost.console.live.views import MAX_CHANGES, LiveView, messages
from mcphost.console.models import FilteredList
from mcphost.console.records.filters import RecordFilter
from tests.audit.recorded_calls import MINUTE, Story, catch_up
from tests.console.tenant_data import Things, told

pytestmark = pytest.mark.django_db

PAGE = "/admin/t/acme/input-requests/"


def asks(things: Things) -> Story:
    story = Story.of(things.tenant, "deploy", at=timezone.now() - MINUTE).play(
        "start; ask colour size"
    )
    told(story)
    catch_up()
    return story


def test_a_new_question_is_a_row_as_on_the_page(operator: Client, acme: Things) -> None:
    before = newest()
    asks(acme)
    message = operator.get(f"{PAGE}changes/?cursor={before}").json()
    assert len(message["rows"]) == 2
    page = operator.get(PAGE).content.decode()
    for row in message["rows"]:
        assert row["html"].startswith(f'<tr data-question="{row["question"]}">')
        assert f'<tr data-question="{row["question"]}">' in page
    assert message["gone"] == []
    assert "c-cut" in message["rows"][0]["html"]


def test_an_answered_question_leaves_the_list_of_open_ones(operator: Client, acme: Things) -> None:
    story = asks(acme)
    before = newest()
    story.play("back; answer colour; answer size; end")
    told(replace(story, made=story.made[4:]))
    catch_up()
    opened = operator.get(f"{PAGE}changes/?state=open&cursor={before}").json()
    assert (opened["rows"], len(opened["gone"])) == ([], 2)
    both = operator.get(f"{PAGE}changes/?state=answered&cursor={before}").json()
    assert [len(both["rows"]), both["gone"]] == [2, []]
    assert "accepted" in both["rows"][0]["html"]


def test_changes_of_another_tenant_are_not_sent(
    operator: Client, staff: Client, acme: Things, globex: Things
) -> None:
    before = newest()
    asks(globex)
    message = operator.get(f"{PAGE}changes/?cursor={before}").json()
    assert message.keys() == {"cursor"}
    every = staff.get(f"/admin/input-requests/changes/?cursor={before}").json()
    assert len(every["rows"]) == 2
    assert ">globex</a>" in every["rows"][0]["html"]


@pytest.mark.parametrize("name", ["state", "counted", "period", "since"])
def test_a_filter_with_an_unknown_value_selects_nothing_and_other_lists_go_on(
    operator: Client, acme: Things, name: str
) -> None:
    before = newest()
    asks(acme)
    unknown = operator.get(f"{PAGE}changes/?cursor={before}&{name}=nonsense").json()
    assert (unknown["rows"], len(unknown["gone"])) == ([], 2)
    lists = [
        LiveView(
            frozenset({acme.tenant}),
            RecordFilter.of(QueryDict(query)),
            of_platform=False,
            listing=FilteredList.QUESTIONS,
        )
        for query in (f"{name}=nonsense", "")
    ]
    texts = messages(changed(None, before, MAX_CHANGES), lists, timezone.now())
    assert [len(json.loads(texts[view])["rows"]) for view in lists] == [0, 2]
