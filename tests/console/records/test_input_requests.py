"""Tests of the pages of questions, of cancelling a call, and of outcomes."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from mcphost.audit.models import Entry
from mcphost.calls.models import CancelledCall, Claim
from mcphost.calls.states import QuestionState
from mcphost.catalogue import selectors, services
from mcphost.listings.input_requests import ListedInputRequest
from mcphost.runtime.call import Client as MCPClient
from mcphost.runtime.call import Delivery
from tests.audit.recorded_calls import MINUTE, Story
from tests.cast import ACTOR
from tests.console.tenant_data import Things, told
from tests.tasks.rows import a_question, a_task

PAGE = "/admin/t/acme/input-requests/"

pytestmark = pytest.mark.django_db


def shown(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    page = response.content.decode()
    return re.sub(r"\s+", " ", unescape(strip_tags(page[page.index("<main") :])))


def waits(things: Things, target: str, ago: timedelta, *keys: str) -> Story:
    """A call of `target` that has waited for a while."""
    story = Story.of(things.tenant, target, at=timezone.now() - ago)
    story.ask(*(keys or ("colour",)))
    told(story)
    return story


def cancels(story: Story) -> str:
    return f"{PAGE}{story.call.id}/cancel/"


def aim(things: Things, seconds: float) -> str:
    """Give the tenant's tool a target time; return its name."""
    row = selectors.primitive(things.tool)
    services.update(row.id, replace(row.fields, target_seconds=seconds), ACTOR)
    return row.name


def ended(things: Things, target: str, script: str, **columns: Any) -> Story:
    """A call of `target` that ended a while ago."""
    story = Story.of(things.tenant, target, at=timezone.now() - 5 * MINUTE, **columns).play(script)
    told(story)
    return story


def rows(client: Client, path: str = PAGE) -> list[ListedInputRequest]:
    response = client.get(path)
    assert response.status_code == 200, path
    return list(response.context["rows"])


def test_the_history_has_every_question_with_what_became_of_it(operator: Client, acme: Things):
    ended(acme, "<i>refund", "start; ask approve_refund; back; answer approve_refund decline; end")
    waits(acme, "deploy", MINUTE, "colour")
    html = operator.get(PAGE).content.decode()
    assert "&lt;i&gt;refund" in html
    assert "<i>refund" not in html
    assert "<noscript>" in html
    page = shown(operator, PAGE)
    for part in (
        "Approve refund",
        "form",
        "declined",
        "says the client",
        "1 min 2 s",
        "complete",
    ):
        assert part in page, part
    for part in ("Colour", "deploy", "Ada's laptop", "open", "expires in 2"):
        assert part in page, part
    newest, oldest = rows(operator)
    assert (newest.state, oldest.state) == ("open", "decline")


def test_each_filter_narrows_the_list_and_texts_of_questions_stay_hidden(operator, auditor, acme):
    aim(acme, 30)
    waits(acme, selectors.primitive(acme.tool).name, MINUTE, "slow")
    waits(acme, "calm", MINUTE, "calm")
    ended(
        acme, "refund", "start; ask gone; back; answer gone; end", client=MCPClient("cursor", "3")
    )
    keys = {
        "": {"slow", "calm", "gone"},
        "state=open": {"slow", "calm"},
        "state=overdue": {"slow"},
        "state=expiring": set(),
        "state=answered": {"gone"},
        "state=declined": set(),
        "tool=refund": {"gone"},
        "client=curs": {"gone"},
        "principal=Ada": {"slow", "calm", "gone"},
        "principal=nobody": set(),
        "period=1h": {"slow", "calm", "gone"},
        "until=2020-01-01": set(),
        "state=nonsense": set(),
        "counted=nonsense": set(),
        "counted=24h&state=nonsense": set(),
    }
    for query, expected in keys.items():
        found = {row.question.key for row in rows(operator, f"{PAGE}?{query}")}
        assert found == expected, query
    assert "1 overdue" in shown(operator, PAGE)
    assert "Which slow?" not in operator.get(PAGE).content.decode()
    assert "has no value “nonsense”" in shown(auditor, f"{PAGE}?state=nonsense")


def test_open_questions_are_counted_above_the_list_and_not_in_lists_of_them(
    operator: Client, staff: Client, acme: Things, globex: Things
) -> None:
    waits(globex, "other", MINUTE)
    assert " open: " not in shown(operator, PAGE)
    for target in ("first", "second"):
        waits(acme, target, MINUTE)
    page = shown(operator, f"{PAGE}?tool=first")
    assert "2 open: waiting for an answer. Show them" in page
    assert page.count("waiting for an answer") == 1
    assert " open: " not in shown(operator, f"{PAGE}?state=open")
    assert "3 open: " in shown(staff, "/admin/input-requests/")
    assert "2 open: " in shown(staff, "/admin/input-requests/?tenant=acme")


def test_an_answer_that_a_task_has_counts_before_its_next_round(
    operator: Client, acme: Things
) -> None:
    for key, state in (("size", QuestionState.ANSWERED), ("colour", QuestionState.OPEN)):
        story = Story.of(acme.tenant, "deploy", delivery=Delivery.TASK, at=timezone.now())
        story.ask(key)
        told(story)
        task = a_task(acme.tenant, story.call.id)
        a_question(task, key, state=state, author_key=key)
    assert {row.question.key: row.state for row in rows(operator)} == {
        "size": "received",
        "colour": "open",
    }
    assert [row.question.key for row in rows(operator, f"{PAGE}?state=open")] == ["colour"]


def test_auditors_read_questions_and_answers_in_words_and_one_entry_records_it(
    auditor: Client, operator: Client, acme: Things
) -> None:
    schema = {
        "properties": {
            "size": {"title": "Size of the box", "oneOf": [{"const": "l", "title": "Large"}]},
            "sure": {"type": "boolean"},
        }
    }
    story = Story.of(acme.tenant, "pack", at=timezone.now() - 5 * MINUTE).play("start")
    story.question("box", {"message": "Which box\nfor 7?", "requestedSchema": schema})
    story.end("input_required", asked=["box"], sealed_by="k1", expires_at=story.at.isoformat())
    reply = {"action": "accept", "content": {"size": "l", "sure": True}}
    story.back().answer("box", payload=reply)
    story.end()
    told(story)
    page = shown(auditor, f"{PAGE}payloads/?tool=pack")
    for part in ("Which box for 7?", "Size of the box: Large; sure: yes", "was recorded"):
        assert part in page, part
    entry = Entry.objects.get(action="questions.viewed")
    (row,) = rows(auditor, f"{PAGE}?tool=pack")
    assert entry.facts == {"tool": "pack", "questions": [str(row.question.id)]}
    assert operator.get(f"{PAGE}payloads/").status_code == 403
    assert "Show texts" not in shown(operator, PAGE)


def test_the_page_of_a_question_says_who_answered_and_what_ran_because_of_it(
    operator, auditor, acme
):
    story = ended(acme, "refund", "start; ask approve; back; answer approve; start; end tool_error")
    (row,) = rows(operator)
    path = f"{PAGE}{row.question.id}/"
    page = shown(operator, path)
    for part in (
        "Question approve",
        "accepted",
        "Ada's laptop",
        "this server did not see who answered",
    ):
        assert part in page, part
    for part in ("Round 2", "1 of 1", "tool error", str(story.call.id), str(row.question.id)):
        assert part in page, part
    assert "Which approve?" not in page
    assert operator.get(f"{path}payloads/").status_code == 403
    assert not Entry.objects.filter(action="payload.viewed").exists()
    page = shown(auditor, f"{path}payloads/")
    for part in ("Which approve?", "approvex", "was recorded"):
        assert part in page, part
    viewed = Entry.objects.get(action="payload.viewed")
    assert viewed.target == str(story.call.id)
    assert set(viewed.facts["payloads"]) == {str(row.question.id), str(row.question.answer)}


def test_a_question_of_another_tenant_has_no_page_here(operator, stranger, acme, globex):
    ended(globex, "refund", "start; ask secret_question; back; answer secret_question; end")
    (row,) = rows(stranger, "/admin/t/globex/input-requests/")
    assert rows(operator) == []
    for query in ("tool=refund", "client=a", "principal=Ada", "state=answered"):
        assert rows(operator, f"{PAGE}?{query}") == []
    assert operator.get(f"{PAGE}{row.question.id}/").status_code == 404


def test_older_and_newer_lead_through_the_history(operator: Client, acme: Things) -> None:
    for number in range(60):
        ended(acme, "refund", f"start; ask q{number}; back; answer q{number}; end")
    first = operator.get(PAGE)
    assert len(first.context["rows"]) == 50
    second = operator.get(f"{PAGE}?{first.context['older']}")
    keys = [row.question.key for page in (first, second) for row in page.context["rows"]]
    assert len(set(keys)) == len(keys) == 60
    assert second.context["older"] == ""
    back = operator.get(f"{PAGE}?{second.context['newer']}")
    assert [row.question.key for row in back.context["rows"]] == keys[:50]


def test_a_target_time_takes_effect_without_publishing(operator: Client, acme: Things):
    aim(acme, 90)
    row = selectors.primitive(acme.tool)
    assert not row.edited
    assert "1 min 30 s for an answer" in shown(operator, f"/admin/t/acme/tools/{acme.tool}/")
    assert selectors.target_times(frozenset({acme.tenant})) == {(acme.tenant, row.name): 90}
    path = f"/admin/t/acme/tools/{acme.tool}/edit/"
    form = operator.get(path).context["form"]
    assert form["target_seconds"].value() == 90
    assert "Target time for answers" in shown(operator, path)
    sent = {field.name: field.value() or "" for field in form}
    page = operator.post(path, {**sent, "function": "probe.echo", "target_seconds": "-5"})
    assert page.status_code == 200
    assert page.context["form"].errors["target_seconds"]


def test_cancelling_a_call_requires_permission_and_records_the_reason(auditor, operator, acme):
    client, who, story = operator, "operator", waits(acme, "deploy", MINUTE)
    (row,) = rows(auditor)
    assert "Cancel the call…" not in shown(auditor, f"{PAGE}{row.question.id}/")
    assert "Cancel the call…" in shown(client, f"{PAGE}{row.question.id}/")
    before = shown(client, cancels(story))
    assert "is waiting for an answer to “Colour”. It will" in before
    assert "will be told the reason when it returns" in before
    response = client.post(cancels(story), {"reason": "  the release\n is off "}, follow=True)
    page = re.sub(r"\s+", " ", unescape(strip_tags(response.content.decode())))
    assert "The call is cancelled. Its client is told the reason." in page
    assert f"The call was cancelled by {who}" in page
    assert "the release is off" in page
    assert "cancelled by an operator" in page
    assert "never answered" not in page
    entry = Entry.objects.get(action="call.cancelled", call__isnull=False)
    assert (entry.actor_label, entry.reason, entry.call) == (
        who,
        "the release is off",
        story.call.id,
    )
    assert CancelledCall.objects.get().reason == "the release is off"
    assert "No open question" in shown(client, f"{PAGE}?state=open")
    assert rows(client)[0].state == "stopped"
    again = client.post(cancels(story), {"reason": "once more"}, follow=True)
    assert "it no longer waits for an answer" in again.content.decode()
    assert Entry.objects.filter(action="call.cancelled", call__isnull=False).count() == 1


@pytest.mark.parametrize("reason", ["", "   ", "\u202e\u200b", "x" * 301])
def test_a_cancellation_reason_is_required_and_has_a_maximum_length(
    operator: Client, acme: Things, reason: str
) -> None:
    story = waits(acme, "deploy", MINUTE)
    response = operator.post(cancels(story), {"reason": reason})
    assert response.status_code == 200
    assert response.context["form"].errors["reason"]
    assert not CancelledCall.objects.exists()


def test_an_ended_call_cannot_be_cancelled_and_the_page_says_so(
    operator: Client, acme: Things
) -> None:
    story = waits(acme, "deploy", MINUTE)
    story.play("back; answer colour; end")
    told(replace(story, made=story.made[2:]))
    response = operator.get(cancels(story), follow=True)
    assert response.redirect_chain == [(f"/admin/t/acme/calls/{story.call.id}/", 302)]
    assert "no longer waits for an answer: it is complete" in response.content.decode()
    page = operator.post(cancels(story), {"reason": "late"}, follow=True).content.decode()
    assert "it no longer waits for an answer" in page
    assert not CancelledCall.objects.exists()
    assert not Claim.objects.exists()


def test_a_call_with_a_running_round_cannot_be_cancelled(operator, acme):
    story = waits(acme, "deploy", MINUTE)
    story.back(timedelta(seconds=20)).answer("colour")
    story.start()
    told(replace(story, made=story.made[2:]))
    page = operator.post(cancels(story), {"reason": "late"}, follow=True).content.decode()
    assert "an answer has come, and its round is running" in page
    assert not CancelledCall.objects.exists()


def asked(things: Things, target: str, ending: str = "") -> None:
    story = Story.of(things.tenant, target, at=timezone.now() - 5 * MINUTE).play("ask colour")
    if ending:
        story.back().answer("colour", ending)
        story.end()
    told(story)


def test_staff_see_the_input_requests_and_outcomes_of_all_tenants(staff, acme, globex):
    asked(acme, "deploy", "accept")
    asked(globex, "rename", "decline")
    page = shown(staff, "/admin/input-requests/funnel/")
    for part in ("acme", "deploy", "globex", "rename", "2 asked, 50% accepted"):
        assert part in page
    waits(acme, "deploy", MINUTE)
    waits(globex, "rename", MINUTE)
    page = shown(staff, "/admin/input-requests/")
    for part in ("acme", "deploy", "globex", "rename"):
        assert part in page
    narrowed = shown(staff, "/admin/input-requests/?tenant=globex")
    assert "rename" in narrowed
    assert "deploy" not in narrowed


def test_several_calls_are_cancelled_with_one_reason_and_each_is_recorded(operator, auditor, acme):
    stories = [waits(acme, f"deploy{number}", MINUTE, "a", "b") for number in range(3)]
    over = ended(acme, "over", "start; ask a; back; answer a; end")
    ids = [str(row.question.id) for row in rows(operator) if row.question.target != "deploy2"]
    assert "Cancel selected…" in shown(operator, PAGE)
    assert "Cancel selected…" not in shown(auditor, PAGE)
    assert auditor.get(f"{PAGE}cancel/", {"question": ids}).status_code == 403
    confirm = shown(operator, f"{PAGE}cancel/?{urlencode({'question': ids}, doseq=True)}")
    assert "Cancel 2 calls" in confirm
    assert operator.post(f"{PAGE}cancel/", {"question": ids}).context["form"].errors["reason"]
    fields = {"question": ids, "reason": "the release is off"}
    page = operator.post(f"{PAGE}cancel/", fields, follow=True).content.decode()
    assert "Cancelled: 2 calls." in page
    entries = Entry.objects.filter(action="call.cancelled", call__isnull=False)
    assert set(entries.values_list("call", "reason")) == {
        (story.call.id, "the release is off") for story in stories[:2]
    }
    assert over.call.id not in set(entries.values_list("call", flat=True))
    logged = Entry.objects.filter(action="call.cancelled", call=None).values_list(
        "facts", flat=True
    )
    assert sorted(logged, key=lambda facts: facts["tool"]) == [
        {"tool": f"deploy{number}", "call": str(story.call.id), "reason": "the release is off"}
        for number, story in enumerate(stories[:2])
    ]
    log = shown(operator, "/admin/t/acme/audit-log/?area=call")
    assert "Call of deploy0" in log
    assert "the release is off" in log
    assert {row.question.target for row in rows(operator, f"{PAGE}?state=open")} == {"deploy2"}


def test_questions_of_another_tenant_cannot_be_chosen(operator, staff, acme, globex):
    waits(globex, "rename", MINUTE)
    (row,) = rows(staff, "/admin/input-requests/")
    fields = {"question": [str(row.question.id), "nonsense"], "reason": "stolen"}
    page = operator.post(f"{PAGE}cancel/", fields, follow=True).content.decode()
    assert "No question is chosen that is still open." in page
    assert not CancelledCall.objects.exists()
    page = staff.post("/admin/input-requests/cancel/", fields, follow=True).content.decode()
    assert "Cancelled: 1 call." in page
    assert CancelledCall.objects.get().reason == "stolen"


def test_each_figure_of_what_became_of_questions_leads_to_exactly_those(
    operator, staff, acme, globex
):
    for number, script in enumerate(
        (
            "start; ask a b; back; answer a; end",
            "start; ask a; back; answer a decline; end tool_error",
            "start; ask a; back; ask a; back; answer a; end",
            "start; ask a; cancel",
            "start; ask a",
        )
    ):
        client = MCPClient(("cursor", "cursor-cli", "")[number % 3], "3")
        ended(acme, ("refund", "refund_all")[number % 2], script, client=client)
    ended(acme, "refund", "start; ask a", delivery=Delivery.PLAYGROUND)
    ended(globex, "refund", "start; ask a; back; answer a; end", client=MCPClient("cursor", "3"))
    for client, path in ((operator, f"{PAGE}funnel/"), (staff, "/admin/input-requests/funnel/")):
        page = client.get(path)
        links = re.findall(r'<a href="([^"]*counted=[^"]*)"[^>]*>(\d+)', page.content.decode())
        assert len(links) > 10
        for url, figure in links:
            assert len(rows(client, unescape(url))) == int(figure), url
        assert "Questions of trials in the console are not counted." in page.content.decode()
        whole = page.context["whole"]
        assert sum(whole.counts) == whole.row.input_requests
    assert len(rows(operator, f"{PAGE}?counted=24h")) == 7
    assert len(rows(operator)) == 8
