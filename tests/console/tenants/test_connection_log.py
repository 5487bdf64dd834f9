"""Tests of the connection log on a tenant's page Connect."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit import last_use
from mcphost.console.tenants.connection_log import ADVICE, WORDS
from mcphost.identity.oauth import connection_log
from mcphost.identity.oauth.connection_log import StepKind, note, note_refused_token
from mcphost.identity.oauth.connections import end
from mcphost.tenants.services import remove_member
from tests.cast import ACTOR, Cast
from tests.console.conftest import Browser
from tests.oauth import connect, connection_of, make_client, membership_of

PAGE = "/admin/t/acme/connect/"

pytestmark = pytest.mark.django_db


def log_of(browser: Client) -> str:
    """Return the text of the log, without its markup."""
    page = browser.get(PAGE).content.decode()
    part = page.split('<div id="connection-log" class="c-stack" data-live>')[1].split("</section>")[
        0
    ]
    return " ".join(re.sub(r"<[^>]*>", " ", part).split())


def test_each_step_has_words() -> None:
    assert set(WORDS) == set(StepKind)
    assert set(ADVICE) < set(StepKind)


def test_an_owner_sees_how_far_each_client_came(owner: Client, cast: Cast) -> None:
    assert "No client has tried to connect" in log_of(owner)
    client = make_client(name="Editor")
    connection_log.write(connection_log.arrival(membership_of(cast.member), client))
    assert "Editor for member not connected registered" in log_of(owner)
    assert "The person has not decided yet" in log_of(owner)
    connect(client, cast.member)
    assert "The client has a token, and has not used it yet." in log_of(owner)
    connection_log.write(
        [connection_log.of_person(membership_of(cast.member), client, StepKind.PRESENTED)]
    )
    assert "Editor for member connected" in log_of(owner)
    end(cast.acme.id, connection_of(cast.member), actor=ACTOR)
    assert "not connected" in log_of(owner)
    assert "ended: revoked" in log_of(owner)


def test_operators_see_all_clients_and_auditors_their_own(cast: Cast, browse: Browser) -> None:
    connect(make_client(name="Editor"), cast.member)
    note(StepKind.CHALLENGED, "acme")
    last_use.flush(timezone.now())
    for person in (cast.operator, cast.staff):
        assert "Editor for member" in log_of(browse(person))
        assert "Clients that have not signed in" in log_of(browse(person))
    auditor = browse(cast.auditor)
    assert "No client has tried to connect" in log_of(auditor)
    assert "You see your own clients." in auditor.get(PAGE).content.decode()
    connect(make_client("dcr-phone", "Phone"), cast.auditor)
    assert "Phone for auditor" in log_of(auditor)
    assert "Editor" not in log_of(auditor)


def test_a_refused_token_is_shown_with_advice(owner: Client, cast: Cast) -> None:
    note_refused_token("acme", cast.stranger.mcp_token)
    note_refused_token("acme", "nonsense")
    last_use.flush(timezone.now())
    log = log_of(owner)
    assert "presented something that is no token of this server" in log
    assert "Check what is set as its header Authorization" in log
    assert "stranger" not in log


def test_texts_of_clients_are_escaped_and_shown(owner: Client, cast: Cast) -> None:
    client = make_client(name="<b>bold</b>\u202e")
    reason = "<script>alert(1)</script>"
    connection_log.write(
        [connection_log.of_person(membership_of(cast.member), client, StepKind.REFUSED, reason)]
    )
    page = owner.get(PAGE).content.decode()
    assert "&lt;b&gt;bold" in page
    assert "refused: <bdi>&lt;script&gt;" in page
    assert "\u202e" not in page


def test_members_see_their_own_clients_under_their_access(cast: Cast, browse: Browser) -> None:
    client = make_client(name="Editor")
    member = browse(cast.member)
    assert "Connection log" not in member.get("/admin/you/").content.decode()
    connect(client, cast.member)
    connect(make_client("dcr-phone", "Phone"), cast.owner)
    page = member.get("/admin/you/").content.decode()
    assert "<bdi>Editor</bdi></b> in acme" in page
    assert "code redeemed" in page
    assert "Phone" not in page
    remove_member(cast.acme.id, cast.member.user, actor=ACTOR)
    assert "Editor" not in member.get("/admin/you/").content.decode()
