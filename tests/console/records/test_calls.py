"""Tests of the pages of calls with questions: the questions, answers and results of each round."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import strip_tags

from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import ANSWER_RECEIVED
from mcphost.audit.summaries.follower import catch_up
from tests.audit.recorded_calls import MINUTE, Story
from tests.console.tenant_data import Things, asking, told

CALLS = "/admin/t/acme/calls/"
REFUSALS = "/admin/t/acme/refusals/"

pytestmark = pytest.mark.django_db


def shown(client: Client, path: str) -> str:
    """Return the text of a page, in one line."""
    response = client.get(path)
    assert response.status_code == 200, path
    return re.sub(r"\s+", " ", unescape(strip_tags(response.content.decode())))


def page_of(story: Story) -> str:
    return f"{CALLS}{story.call.id}/"


def put(story: Story) -> str:
    """Record a call, and return the URL of its page."""
    told(story)
    return page_of(story)


def a_story(acme: Things, ago: timedelta = 5 * MINUTE) -> Story:
    return Story.of(acme.tenant, "deploy", at=timezone.now() - ago)


def targets(client: Client, query: str) -> list[str]:
    return [row.entry.target for row, _ in client.get(f"{CALLS}{query}").context["calls"]]


@pytest.fixture
def story(acme: Things) -> Story:
    made = asking(acme)
    told(made)
    return made


def test_the_page_of_a_call_shows_responders_response_times_and_outcomes(operator, story):
    page = shown(operator, page_of(story))
    for part in (
        "The call is waiting for an answer to Colour",
        "Round 1",
        "state sealed with key k1",
        "Reason form",
        "accepted by Ada's laptop after 1 min 2 s",
        "Reported by the client; this server did not see who answered.",
        "The request state was sealed with key k1.",
        "It started round 2: asked a question",
        "no answer",
        "The input was requested again in round 2",
        "No answer yet. Expires in",
    ):
        assert part in page, part


@pytest.mark.parametrize("who", ["owner", "staff"])
def test_non_auditors_see_that_a_payload_exists_but_not_its_content(cast, browse, story, who):
    client = browse(getattr(cast, who))
    page = shown(client, page_of(story))
    assert page.count("Text: encrypted; auditors can read it") == 4
    assert "Show payloads" not in page
    assert "canary-acme-answer" not in page


def test_an_auditor_reads_all_payloads_of_a_call_and_each_view_is_recorded(auditor, story):
    assert f"{page_of(story)}payloads/" in auditor.get(page_of(story)).content.decode()
    assert not Entry.objects.filter(action="payload.viewed").exists()
    with CaptureQueriesContext(connection) as made:
        page = shown(auditor, f"{page_of(story)}payloads/")
    assert len([each for each in made if each["sql"].startswith("INSERT")]) == 1
    for part in ("Which reason?", "canary-acme-answer", "canary-acme-argument", "Raw JSON"):
        assert part in page, part
    viewed = Entry.objects.get(action="payload.viewed", actor_label="auditor")
    kept = [str(each.id) for each in story.made if each.payload is not None]
    assert sorted(viewed.facts["payloads"]) == sorted(kept)
    assert viewed.target == str(story.call.id)
    log = auditor.get("/admin/t/acme/audit-log/?area=payload").content.decode()
    assert f"payloads:</dt> <dd>{len(kept)}<" in log


def test_payloads_that_are_shown_are_unfolded(auditor: Client, story: Story) -> None:
    page = auditor.get(f"{page_of(story)}payloads/").content.decode()
    assert '<details class="c-wire" open>' in page
    assert page.count('<details class="c-wire"') == page.count('<details class="c-wire" open>')
    assert "<details><summary>Answer" not in page


def test_an_erased_payload_is_shown_as_erased_and_not_recorded_as_viewed(auditor, owner, story):
    answer = next(each for each in story.made if each.action == ANSWER_RECEIVED)
    owner.post(f"/admin/t/acme/payloads/{answer.id}/erase/")
    page = shown(auditor, f"{page_of(story)}payloads/")
    assert "Text: erased" in page
    assert "canary-acme-answer" not in page
    viewed = Entry.objects.get(action="payload.viewed")
    assert str(answer.id) not in viewed.facts["payloads"]
    Payload.objects.update(key_id="gone")
    assert "The payload cannot be read:" in shown(auditor, f"{page_of(story)}payloads/")


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("accept", "accepted"),
        ("received", "answered"),
    ],
)
def test_input_responses_are_shown_and_filtered_by_outcome(operator, acme, outcome, said):
    story = a_story(acme).play("ask sure")
    story.back().answer("sure", outcome)
    story.end()
    assert f"{said} by Ada's laptop" in shown(operator, put(story))
    assert f"1 {said}" in shown(operator, CALLS)
    assert targets(operator, f"?questions={outcome}") == ["deploy"]
    words = badges(operator, page_of(story))
    assert ("bad", "accept") not in words
    assert words.count(("good", "accepted")) == (3 if outcome == "accept" else 0)


def badges(client: Client, path: str) -> list[tuple[str, str]]:
    """Return the badges on a page: their tone and their text."""
    page = client.get(path).content.decode()
    return re.findall(r'<span class="c-badge c-(\w+)">([^<]*)</span>', page)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("outcome=toolerror", "The filter “Outcome” has no value “toolerror”."),
        ("period=decade", "The filter “Period” has no value “decade”."),
        ("after=zzz", "There is no page “zzz”."),
    ],
)
def test_an_unknown_filter_value_is_named_and_matches_nothing(auditor, acme, query, said):
    put(a_refused(acme))
    for path in (CALLS, REFUSALS, "/admin/t/acme/audit-log/"):
        page = auditor.get(f"{path}?{query}")
        assert page.status_code == 200
        assert said in unescape(page.content.decode())
        assert not (page.context.get("calls") or page.context.get("entries"))


def a_refused(acme: Things) -> Story:
    return a_story(acme).play("ask sure; refuse expired")


def test_only_auditors_see_why_an_input_response_is_invalid(
    operator: Client, auditor: Client, acme: Things
):
    """The reason may quote the answer."""
    story = a_story(acme).play("ask sure; back; answer sure")
    story.ask("sure", invalid={"sure": "maybe is no answer"})
    path = put(story)
    assert "invalid by Ada's laptop" in shown(operator, path)
    assert "auditors can read why" in shown(operator, path)
    assert "maybe is no answer" not in shown(operator, path)
    assert "maybe is no answer" in shown(auditor, path)
    assert targets(operator, "?questions=invalid") == ["deploy"]


def test_refused_request_states_are_listed_with_their_actual_reason(operator, staff, acme, globex):
    assert "No refusals yet" in shown(operator, REFUSALS)
    story = a_story(acme).play("ask sure")
    story.refuse("of another principal")
    nowhere, theirs = a_story(acme), Story.of(globex.tenant, "theirs", at=timezone.now())
    for each in (nowhere, theirs):
        each.later(timedelta(minutes=1)).refuse("a token that was changed")
        each.made[-1] = each.made[-1]._replace(call=None, round=None)
    told(nowhere, theirs)
    path = put(story)
    assert "A request state was rejected: of another principal" in shown(operator, path)
    assert "1 rejected" in shown(operator, CALLS)
    assert targets(operator, "?questions=refused") == ["deploy"]
    page = operator.get(REFUSALS)
    assert [entry.reason for entry, _ in page.context["entries"]] == [
        "a token that was changed",
        "of another principal",
    ]
    assert path in page.content.decode()
    assert "No matching refusals" in shown(operator, f"{REFUSALS}?tool=none")
    assert operator.get("/admin/refusals/").status_code == 403
    everywhere = staff.get("/admin/refusals/").context["entries"]
    assert {slug for _, slug in everywhere} == {"acme", "globex"}
    only = staff.get("/admin/refusals/?tenant=globex").context["entries"]
    assert [slug for _, slug in only] == ["globex"]
    assert "state.refused" not in shown(operator, "/admin/t/acme/audit-log/")


def test_open_input_requests_are_on_the_dashboard_and_on_the_page_of_the_tenant(
    owner, staff, story
):
    for client, path in ((owner, "/admin/"), (staff, "/admin/"), (owner, "/admin/t/acme/")):
        page = client.get(path)
        assert [each.key for each, _ in page.context["waiting"]] == ["colour"]
        assert page_of(story) in page.content.decode()
    assert targets(owner, "?outcome=open") == [story.call.target]


def test_the_number_of_queries_of_call_pages_does_not_grow(auditor: Client, acme: Things) -> None:
    first = a_story(acme).play("ask q0")
    told(first)
    longer = a_story(acme).play("ask q0 q1 q2")
    for number in range(6):
        longer.back(MINUTE / 10)
        longer.answer(f"q{number}")
        longer.start()
        longer.ask(*(f"q{number + each}" for each in (1, 2, 3)))
    before = [queries(auditor, path) for path in pages(first)]
    told(longer, *(asking(acme) for _ in range(10)))
    assert [queries(auditor, path) for path in pages(longer)] == before


def pages(story: Story) -> tuple[str, ...]:
    return ("/admin/", "/admin/t/acme/", CALLS, page_of(story), REFUSALS)


def queries(client: Client, path: str) -> int:
    catch_up(timezone.now())  # else the page does it
    with CaptureQueriesContext(connection) as counted:
        assert client.get(path).status_code == 200
    return len(counted)
