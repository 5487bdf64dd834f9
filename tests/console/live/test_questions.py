"""The live list of questions: rows of questions whose call changed, filtered and rendered as the page does."""

from dataclasses import replace

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.summaries.selectors import newest
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
