"""Tests of what needs attention: each line for the users who can do something about it."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue.models import Grant
from mcphost.console.dashboards.attention import Hand
from mcphost.identity.models import Token
from mcphost.identity.services import TokenRequest, issue
from mcphost.observability import health
from mcphost.runtime.call import Delivery
from mcphost.tenants.roles import CALL_TOOLS
from tests.audit.recorded_calls import Story, keep
from tests.cast import Cast
from tests.console.dashboards.rows import calls
from tests.console.tenant_data import Things

pytestmark = pytest.mark.django_db

OVERVIEW = "/admin/t/acme/"


def hands(client: Client, path: str = OVERVIEW) -> list[Hand]:
    return list(client.get(path).context["hands"])


def texts(client: Client, path: str = OVERVIEW) -> list[str]:
    return [f"{each.about} {each.text}".strip() for each in hands(client, path)]


def waiting(cast: Cast, left: timedelta, target: str = "refund", **columns: Any) -> None:
    story = Story.of(cast.acme.id, target, at=timezone.now() - timedelta(minutes=1), **columns)
    story.expires = left + timedelta(minutes=1, seconds=5)
    story.ask("approve")
    keep(story)


def token(cast: Cast, name: str, left: timedelta, life: timedelta = timedelta(days=90)) -> None:
    now = timezone.now()
    wanted = TokenRequest(name, (CALL_TOOLS,), expires_at=now + left + timedelta(minutes=1))
    made = issue(
        cast.acme.id, cast.owner.user, wanted, actor=Actor.person(cast.owner.user.pk, "owner")
    )
    Token.objects.filter(pk=made.id).update(created_at=now + left - life)


def test_input_requests_that_expire_soon_link_to_their_calls_and_together_to_a_list(
    cast: Cast, auditor: Client
) -> None:
    waiting(cast, timedelta(minutes=4))
    waiting(cast, timedelta(minutes=25), "far")
    waiting(cast, timedelta(minutes=2), "tried", delivery=Delivery.PLAYGROUND)
    assert texts(auditor) == ["refund waits for an answer: its question expires in 4 minutes."]
    assert auditor.get(hands(auditor)[0].url).status_code == 200
    for _ in range(4):
        waiting(cast, timedelta(minutes=4))
    last = hands(auditor)[-1]
    assert len(hands(auditor)) == 4
    assert last.text == "In all, 5 open questions expire within ten minutes."
    assert len(auditor.get(last.url).context["rows"]) == 5  # neither the far one nor the trial


def test_expiring_tokens_are_shown_to_users_who_manage_them(cast, owner, operator, staff):
    token(cast, "laptop", timedelta(days=3))
    token(cast, "tonight", timedelta(hours=5))
    token(cast, "later", timedelta(days=20))
    token(cast, "of a week", timedelta(days=6), life=timedelta(days=7))
    said = [
        "tonight is a token of owner and expires in 5 hours.",
        "laptop is a token of owner and expires in 3 days.",
    ]
    assert texts(owner) == texts(owner, "/admin/") == texts(staff) == said
    assert [each.tone for each in hands(owner)] == ["warn", "info"]
    assert texts(operator) == []
    assert owner.get(hands(owner)[0].url).status_code == 200
    Token.objects.filter(name="laptop").update(revoked_at=timezone.now())
    Token.objects.filter(name="tonight").update(expires_at=timezone.now())
    assert texts(owner) == []


def test_a_tool_that_is_not_served_links_to_its_page(cast: Cast, acme: Things, owner: Client):
    Grant.objects.all().delete()
    catalogue.forget_all()
    line = hands(owner)[0]
    assert (line.tone, line.about, line.verb) == ("bad", "canary-acme-tool", "View tool")
    assert line.text.startswith("is not served: ")
    assert str(acme.tool) in line.url
    assert owner.get(line.url).status_code == 200
    assert [each.tenant for each in hands(owner, "/admin/")] == ["acme"]


def test_a_spike_of_errors_links_to_the_calls(cast: Cast, operator: Client, staff: Client) -> None:
    calls(cast.acme.id, 12, target="report", outcome="tool_error")
    calls(cast.acme.id, 8, target="report")
    calls(cast.acme.id, 100, target="report", ago=timedelta(hours=5))
    calls(cast.acme.id, 40, target="steady", outcome="tool_error")
    calls(cast.acme.id, 40, target="steady", outcome="tool_error", ago=timedelta(hours=5))
    calls(cast.acme.id, 9, target="few", outcome="tool_error")
    said = "report failed in 12 of 20 calls in the last hour; in the day before, in 0 of 100."
    for client in (operator, staff):
        assert texts(client) == texts(client, "/admin/") == [said]
        assert len(client.get(hands(client)[0].url).context["calls"]) == 12


def test_problems_of_the_process_are_shown_to_staff_only(cast: Cast, owner: Client, staff: Client):
    remove = health.register("console-test", lambda: "the disk is full")
    try:
        assert texts(staff, "/admin/") == ["console-test: the disk is full"]
        assert texts(owner, "/admin/") == texts(staff) == []
    finally:
        remove()


def test_the_most_urgent_line_is_first_and_other_tenants_see_none(cast, acme, owner, browse):
    token(cast, "laptop", timedelta(days=3))
    waiting(cast, timedelta(minutes=4))
    calls(cast.acme.id, 12, outcome="tool_error")
    Grant.objects.all().delete()
    catalogue.forget_all()
    assert [each.tone for each in hands(owner)] == ["bad", "bad", "warn", "info"]
    assert texts(browse(cast.stranger), "/admin/") == []
