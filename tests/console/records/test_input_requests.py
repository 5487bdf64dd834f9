"""Tests of the pages of open input requests, of cancelling a call, and of outcomes."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from mcphost.audit.models import Entry
from mcphost.calls.models import CancelledCall, Claim
from mcphost.catalogue import selectors, services
from tests.audit.recorded_calls import MINUTE, Story
from tests.cast import ACTOR
from tests.console.tenant_data import Things, told

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


def test_each_open_input_request_shows_its_tool_caller_and_expiry(
    operator: Client, acme: Things
) -> None:
    waits(acme, "<i>deploy", MINUTE, "colour", "size")
    page = operator.get(PAGE).content.decode()
    assert "&lt;i&gt;deploy" in page
    assert "<i>deploy" not in page
    assert '<div id="live" class="c-live" data-live>' in page
    assert "<noscript>" in page
    page = shown(operator, PAGE)
    for part in ("deploy", "colour", "size", "form", "Ada's laptop", "stateless", "ago", "in 2"):
        assert part in page, part
    assert page.count("Cancel…") == 2


def test_a_target_time_takes_effect_without_publishing(operator: Client, acme: Things):
    aim(acme, 90)
    row = selectors.primitive(acme.tool)
    assert not row.edited
    assert "1 min 30 s for a response" in shown(operator, f"/admin/t/acme/tools/{acme.tool}/")
    assert selectors.targets(frozenset({acme.tenant})) == {(acme.tenant, row.name): 90}
    path = f"/admin/t/acme/tools/{acme.tool}/edit/"
    form = operator.get(path).context["form"]
    assert form["target_seconds"].value() == 90
    assert "Target time for responses" in shown(operator, path)
    sent = {field.name: field.value() or "" for field in form}
    page = operator.post(path, {**sent, "function": "probe.echo", "target_seconds": "-5"})
    assert page.status_code == 200
    assert page.context["form"].errors["target_seconds"]


def test_cancelling_a_call_requires_permission_and_records_the_reason(auditor, operator, acme):
    client, who, story = operator, "operator", waits(acme, "deploy", MINUTE)
    assert "Cancel…" not in shown(auditor, PAGE)
    before = shown(client, cancels(story))
    assert "waits for a response to colour" in before
    assert "told the reason when it returns" in before
    response = client.post(cancels(story), {"reason": "  the release\n is off "}, follow=True)
    page = re.sub(r"\s+", " ", unescape(strip_tags(response.content.decode())))
    assert "The call is cancelled. Its client is told the reason." in page
    assert f"The call was cancelled by {who}" in page
    assert "the release is off" in page
    assert "cancelled by an operator" in page
    assert "never responded" not in page
    entry = Entry.objects.get(action="call.cancelled")
    assert (entry.actor_label, entry.reason, entry.call) == (
        who,
        "the release is off",
        story.call.id,
    )
    assert CancelledCall.objects.get().reason == "the release is off"
    assert "No open input request" in shown(client, PAGE)
    again = client.post(cancels(story), {"reason": "once more"}, follow=True)
    assert "it no longer waits for a response" in again.content.decode()
    assert Entry.objects.filter(action="call.cancelled").count() == 1


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
    assert "no longer waits for a response: it is complete" in shown(operator, cancels(story))
    page = operator.post(cancels(story), {"reason": "late"}, follow=True).content.decode()
    assert "it no longer waits for a response" in page
    assert not CancelledCall.objects.exists()
    assert not Claim.objects.exists()


def test_a_call_with_a_running_round_cannot_be_cancelled(operator, acme):
    story = waits(acme, "deploy", MINUTE)
    story.back(timedelta(seconds=20)).answer("colour")
    story.start()
    told(replace(story, made=story.made[2:]))
    page = operator.post(cancels(story), {"reason": "late"}, follow=True).content.decode()
    assert "a response has come, and its round is running" in page
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
    for part in ("acme", "deploy", "globex", "rename", "2 requested, 50 % accepted"):
        assert part in page
    waits(acme, "deploy", MINUTE)
    waits(globex, "rename", MINUTE)
    page = shown(staff, "/admin/input-requests/")
    for part in ("acme", "deploy", "globex", "rename"):
        assert part in page
    narrowed = shown(staff, "/admin/input-requests/?tenant=globex")
    assert "rename" in narrowed
    assert "deploy" not in narrowed
