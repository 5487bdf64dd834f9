"""The pages of links: the right user can confirm, and every other request gets the same response."""

from datetime import timedelta
from string import ascii_letters, digits
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.calls import links as calls
from mcphost.calls.links import Link
from mcphost.calls.models import StreamedCall
from mcphost.calls.states import CallState
from mcphost.runtime.call import Delivery
from mcphost.serving.execution import links
from mcphost.serving.execution.links import CALLBACK, PAGE, LinkContent
from mcphost.tasks.states import TaskState
from mcphost.vault import sealer
from tests.audit.recorded_calls import Story
from tests.cast import Cast
from tests.console.tenant_data import told
from tests.tasks.rows import a_task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("stopped")]


def a_link(cast: Cast, kind: str = PAGE, key: str = "payment") -> tuple[Link, str]:
    """A link of a call of a member of `acme`, and its path."""
    link = Link(cast.acme.id, uuid4(), key)
    sealer.warm(cast.acme.id)
    until = int((timezone.now() + timedelta(hours=1)).timestamp())
    user = cast.member.user.pk if kind == PAGE else 0
    sealed = LinkContent(kind, link.call.hex, key, until, user, "Ada's <client>", "sign_off")
    return link, f"/t/acme/{kind}/{links._seal(link.tenant, sealed)}"


def signed_in(user: User, **options: Any) -> Client:
    browser = Client(**options)
    browser.force_login(user)
    return browser


def invented(good: str) -> list[str]:
    return [
        good[:-1],
        good.replace("/acme/", "/globex/"),
        good.replace("/acme/", "/unknown/"),
        "/t/acme/done/x",
        "/t/globex/done/x",
        "/t/unknown/done/x",
    ]


@pytest.mark.requirement("elicitation.person")
def test_the_asked_user_sees_the_request_and_confirms_it_with_a_post(cast: Cast) -> None:
    link, path = a_link(cast)
    member = signed_in(cast.member.user)
    page = member.get(path)
    assert page.status_code == 200
    for said in (
        "Confirm “sign_off”?",
        "sign_off",
        "Payment",
        "Ada&#x27;s &lt;client&gt;",
        "Acme",
    ):
        assert said in page.content.decode(), said
    assert not calls.is_open(link)
    refused = member.get(f"{path}?refuse").content.decode()
    assert "Not confirmed" in refused
    assert "Decline the request in your client" in refused
    assert not calls.is_open(link)
    done = member.post(path)
    assert (done.status_code, "Thank you" in done.content.decode()) == (200, True)
    assert calls.is_open(link)
    entry = Entry.objects.get(action="link.confirmed")
    assert (entry.actor_kind, entry.actor_label) == ("person", "member")
    assert "You have confirmed this" in member.get(path).content.decode()
    assert member.post(path).status_code == 200
    assert Entry.objects.filter(action="link.confirmed").count() == 1


def test_the_page_shows_the_text_of_the_input_request_that_led_there(cast: Cast) -> None:
    link, path = a_link(cast)
    story = Story.of(cast.acme.id, "sign_off", at=timezone.now())
    story.call = story.call._replace(id=link.call)
    story.question("other", {"message": "Which box?", "url": "https://example.com/other"})
    story.question("page", {"message": "Sign <v7> off.", "url": f"http://testserver{path}"})
    told(story)
    page = signed_in(cast.member.user).get(path).content.decode()
    assert "Sign &lt;v7&gt; off." in page
    assert "Which box" not in page
    assert not Entry.objects.filter(action="payload.viewed").exists()


def test_the_page_shows_the_latest_of_several_input_requests_that_lead_there(cast: Cast) -> None:
    link, path = a_link(cast)
    story = Story.of(cast.acme.id, "sign_off", at=timezone.now())
    story.call = story.call._replace(id=link.call)
    story.question("small", {"message": "Pay 10.", "url": f"http://testserver{path}"})
    story.back()
    story.question("large", {"message": "Pay 1000.", "url": f"http://testserver{path}"})
    story.question("tip", {"message": "And a tip.", "url": f"http://testserver{path}"})
    told(story)
    page = signed_in(cast.member.user).get(path).content.decode()
    assert "Pay 1000." in page
    assert "And a tip." in page
    assert "Pay 10." not in page


def a_session_call(link: Link, state: CallState) -> None:
    """The row of the link's call, which is answered on a stream."""
    now = timezone.now()
    StreamedCall.objects.create(
        **{name: uuid4() for name in ("session", "stream", "owner")},
        id=link.call,
        tenant=link.tenant,
        request_id="1",
        request="sealed",
        state=state,
        taken_at=now,
        expires_at=now + timedelta(hours=1),
    )


def story_of(link: Link, cast: Cast, **columns: Any) -> Story:
    """The record of the link's call, which has started."""
    at = timezone.now() - timedelta(minutes=10)
    story = Story.of(cast.acme.id, "sign_off", at=at, **columns)
    story.call = story.call._replace(id=link.call)
    story.start()
    return story


ENDED = {
    "complete": "ask payment; back; answer payment; start; end",
    "declined": "ask payment; back; answer payment decline; start; end tool_error",
    "cancelled by an operator": "ask payment; cancel",
    "task cancelled by its client": "end deferred; cancel_task",
}
GOES_ON = {
    "no round has ended": "start",
    "a question is open": "ask payment",
    "the answer was taken, and a round waits for the page": "ask payment; back; answer payment; start",
    "the client closed the stream of a round": "end cancelled",
    "a task goes on later": "end deferred",
    "its client sends other answers": "ask payment; back; answer payment decline; end; again; answer payment",
}


@pytest.mark.requirement("elicitation.person")
@pytest.mark.parametrize("script", ENDED.values(), ids=ENDED)
def test_a_call_that_has_ended_cannot_be_confirmed(cast: Cast, script: str) -> None:
    link, path = a_link(cast)
    told(story_of(link, cast).play(script))
    member = signed_in(cast.member.user)
    for reply in (member.get(path), member.get(f"{path}?refuse"), member.post(path)):
        assert reply.status_code == 410
        assert "Too late to confirm" in reply.content.decode()
    assert not calls.is_open(link)
    assert not Entry.objects.filter(action="link.confirmed").exists()
    assert signed_in(cast.owner.user).post(path).status_code == 404


@pytest.mark.parametrize("script", GOES_ON.values(), ids=GOES_ON)
def test_a_call_that_goes_on_can_be_confirmed(cast: Cast, script: str) -> None:
    link, path = a_link(cast)
    told(story_of(link, cast).play(script))
    member = signed_in(cast.member.user)
    assert "Confirm “sign_off”?" in member.get(path).content.decode()
    assert "Thank you" in member.post(path).content.decode()
    assert calls.is_open(link)


CANCELLED_ROUND = "ask payment; back; answer payment; start; end cancelled"


@pytest.mark.parametrize("state", [*CallState, None])
@pytest.mark.parametrize("delivery", [Delivery.LEGACY, Delivery.MODERN])
def test_a_cancelled_call_of_a_session_can_be_confirmed_while_a_process_may_continue_it(
    cast: Cast, delivery: Delivery, state: CallState | None
) -> None:
    link, path = a_link(cast)
    told(story_of(link, cast, delivery=delivery).play(CANCELLED_ROUND))
    if state is not None and delivery is Delivery.LEGACY:
        a_session_call(link, state)
    goes_on = delivery is Delivery.MODERN or state in (CallState.RUNNING, CallState.WAITING)
    member = signed_in(cast.member.user)
    assert member.get(path).status_code == (200 if goes_on else 410)
    assert member.post(path).status_code == (200 if goes_on else 410)
    assert calls.is_open(link) is goes_on


def test_a_call_of_a_session_whose_round_ended_otherwise_can_be_confirmed(cast: Cast) -> None:
    link, path = a_link(cast)
    told(story_of(link, cast, delivery=Delivery.LEGACY).play("ask payment"))
    assert signed_in(cast.member.user).post(path).status_code == 200


@pytest.mark.parametrize("state", [TaskState.WORKING, TaskState.FAILED])
def test_a_task_that_will_be_retried_can_be_confirmed(cast: Cast, state: TaskState) -> None:
    link, path = a_link(cast)
    told(story_of(link, cast).play("ask payment; back; answer payment; start; end crashed"))
    a_task(cast.acme.id, link.call, state=state)
    works = state is TaskState.WORKING
    assert signed_in(cast.member.user).get(path).status_code == (200 if works else 410)
    assert signed_in(cast.member.user).post(path).status_code == (200 if works else 410)
    assert calls.is_open(link) is works


def test_a_request_can_be_confirmed_until_its_time_to_answer_is_over(cast: Cast) -> None:
    link, path = a_link(cast)
    story = story_of(link, cast)
    story.expires = timedelta(minutes=11)
    expires_at = story.at + story.expires
    told(story.play("ask payment"))
    page = signed_in(cast.member.user).get(path).content.decode()
    assert f"{expires_at:%Y-%m-%d %H:%M} UTC" in page

    late_link, late_path = a_link(cast)
    late = story_of(late_link, cast)
    late.expires = timedelta(minutes=9)
    told(late.play("ask payment"))
    reply = signed_in(cast.member.user).post(late_path)
    assert (reply.status_code, calls.is_open(late_link)) == (410, False)


def test_a_confirmation_stays_known_after_its_call_has_ended(cast: Cast) -> None:
    link, path = a_link(cast)
    member = signed_in(cast.member.user)
    assert "Thank you" in member.post(path).content.decode()
    told(story_of(link, cast).play("ask payment; back; answer payment; start; end"))
    assert "You have confirmed this" in member.get(path).content.decode()
    assert "Thank you" in member.post(path).content.decode()


def test_a_link_has_one_spelling(cast: Cast) -> None:
    _, path = a_link(cast)
    owner, dot, body = path.rpartition("/")[2].partition(".")
    others = [letter for letter in ascii_letters + digits + "-_" if letter != owner[-1]]
    spelled = [f"/t/acme/{PAGE}/{owner[:-1]}{letter}{dot}{body}" for letter in others]
    browser = signed_in(cast.member.user)
    assert browser.get(path).status_code == 200
    assert {browser.get(address).status_code for address in spelled} == {404}


@pytest.mark.parametrize("method", ["get", "head", "post"])
def test_without_a_login_every_link_redirects_to_sign_in_before_any_look_up(
    cast: Cast, method: str
) -> None:
    link, good = a_link(cast)
    for path in (good, *invented(good)):
        with CaptureQueriesContext(connection) as queries:
            reply = getattr(Client(), method)(path)
        assert reply.status_code == 302
        where = urlsplit(reply["Location"])
        assert where.path == "/admin/login/"
        assert parse_qs(where.query) == {"next": [path]}
        assert len(queries) == 0
    assert not calls.is_open(link)


@pytest.mark.requirement("elicitation.person")
@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", ["owner", "operator", "auditor", "staff", "stranger"])
def test_another_user_gets_the_same_response_as_for_an_unknown_link(
    cast: Cast, method: str, name: str
) -> None:
    link, good = a_link(cast)
    other = signed_in(getattr(cast, name).user)
    replies = [getattr(other, method)(path) for path in (good, *invented(good))]
    assert {reply.status_code for reply in replies} == {404}
    assert len({reply.content for reply in replies}) == 1
    told = [
        {name: value for name, value in reply.items() if name != "Content-Length"}
        for reply in replies
    ]
    assert all(each == told[0] for each in told)
    assert not calls.is_open(link)


def test_a_post_without_the_csrf_token_confirms_nothing(cast: Cast) -> None:
    link, path = a_link(cast)
    assert signed_in(cast.member.user, enforce_csrf_checks=True).post(path).status_code == 403
    assert not calls.is_open(link)


def test_the_link_page_is_not_cached_and_allows_its_own_form(cast: Cast) -> None:
    headers = signed_in(cast.member.user).get(a_link(cast)[1]).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["put", "delete", "options", "patch"])
def test_no_other_method_confirms_a_link(cast: Cast, method: str) -> None:
    link, path = a_link(cast)
    assert getattr(signed_in(cast.member.user), method)(path).status_code == 405
    assert not calls.is_open(link)


def test_a_callback_accepts_a_post_without_a_credential(cast: Cast) -> None:
    link, path = a_link(cast, CALLBACK)
    machine = Client(enforce_csrf_checks=True)
    for method in ("get", "head", "put", "delete"):
        assert getattr(machine, method)(path).status_code == 405
    assert not calls.is_open(link)
    reply = machine.post(path, {"anything": "at all"}, content_type="application/json")
    assert (reply.status_code, reply.content) == (204, b"")
    assert calls.is_open(link)
    entry = Entry.objects.get(action="callback.received")
    assert (entry.actor_kind, entry.facts["source"]) == ("anonymous", "127.0.0.1")


def test_page_links_and_callback_links_are_not_interchangeable(cast: Cast) -> None:
    page, callback = a_link(cast), a_link(cast, CALLBACK)
    assert Client().post(page[1].replace("/done/", "/callback/")).status_code == 404
    asked = signed_in(cast.member.user)
    assert asked.post(callback[1].replace("/callback/", "/done/")).status_code == 404
    assert not calls.is_open(page[0])
    assert not calls.is_open(callback[0])


def test_all_unknown_callbacks_get_the_same_response(cast: Cast) -> None:
    good = a_link(cast, CALLBACK)[1]
    paths = [path.replace("/done/", "/callback/") for path in invented(good)]
    replies = [Client().post(path) for path in paths]
    assert {(reply.status_code, reply.content) for reply in replies} == {(404, b"")}
