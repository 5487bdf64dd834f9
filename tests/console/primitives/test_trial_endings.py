"""Trials end with their tool, their operator's rights and their page, as the console says."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.audit.records import CALL_CANCELLED, ROUND_FINISHED
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive, PrimitiveVersion
from mcphost.console.primitives.trials import NO_ACCESS
from mcphost.tenants.roles import Role
from mcphost.tenants.services import close_tenant, remove_member, set_member
from tests.audit.recorded_calls import catch_up
from tests.cast import ACTOR, PASSWORD
from tests.console.primitives.test_trials import NEW, SCRIPT, TRY, acme, answer, begin, form, sent

__all__ = ["acme"]

LOGIN = "/admin/login/"
TOOLS = "/admin/t/acme/tools/"
ACCEPTED = {"answer-sure-action": "accept", "answer-sure-value-sure": "true"}
OVER = "Trials that still wait for an answer will end"

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("acme")]


def tool(tenant: Any, *, published: bool) -> str:
    """Save a tool that asks; return the path of its page."""
    fields = PrimitiveFields("order", {"code": SCRIPT.strip()}, kind="script", description="Order.")
    row = services.create(tenant, fields, ACTOR)
    if published:
        services.publish(row.id, ACTOR)
    return f"{TOOLS}{row.id}/"


def saved() -> Primitive:
    return Primitive.objects.get(tenant__slug="acme", name="order")


def rounds(call: Any) -> list[str]:
    found = Entry.objects.filter(call=call, action=ROUND_FINISHED).order_by("id")
    return list(found.values_list("outcome", flat=True))


def ending(call: Any) -> str:
    """Why the call was cancelled; empty if it was not."""
    found = Entry.objects.filter(call=call, action=CALL_CANCELLED)
    return " ".join(found.values_list("reason", flat=True))


def waiting() -> Any:
    """The id of the call that waits for an answer."""
    return Entry.objects.filter(action=ROUND_FINISHED, outcome="input_required").latest("id").call


def posted(browser: Client, action: str, page: str) -> str:
    """Do what an operator does on the page of the tool; return what the page says before it is done."""
    if action == "roll-back":
        version = PrimitiveVersion.objects.get(primitive=saved(), number=1).id
        address = f"{page}versions/{version}/serve/"
    else:
        address = f"{page}{action}/"
    catch_up()
    shown = browser.get(address)
    text = " ".join(shown.context["points"]) if shown.status_code == 200 else ""
    browser.post(
        address, {**((shown.context or {}).get("bound") or {}), "name": "order", "note": ""}
    )
    return text


PUBLISHED, DRAFT, DISABLED = "published", "draft", "disabled"
GOES_ON, REFUSED = True, False
TABLE = [
    # the tool was in this state when the trial began, what is done then, and whether the trial goes on
    (PUBLISHED, ["disable"], OVER, REFUSED),
    (PUBLISHED, ["archive"], OVER, REFUSED),
    (PUBLISHED, ["roll-back"], OVER, REFUSED),
    (PUBLISHED, ["disable", "enable"], OVER, REFUSED),
    (DRAFT, ["publish"], "", GOES_ON),
    (DRAFT, ["publish", "disable"], OVER, REFUSED),
    (DRAFT, ["delete"], OVER, REFUSED),
    (DISABLED, ["enable"], "", GOES_ON),
]


@pytest.mark.parametrize(("state", "actions", "sentence", "goes_on"), TABLE)
def test_a_trial_continues_after_a_change_only_if_the_page_says_so(
    operator, acme, state, actions, sentence, goes_on
):
    page = tool(acme.tenant, published=state != DRAFT)
    if actions == ["roll-back"]:
        fields = PrimitiveFields("order", {"code": SCRIPT}, kind="script", description="Two.")
        services.update(saved().id, fields, ACTOR)
        services.publish(saved().id, ACTOR)
    if state == DISABLED:
        services.disable(saved().id, ACTOR)
    filled = operator.post(f"{page}try/", form(name="order"))
    values = {"_run": "1", "arguments-value-item": "tea"}
    asked = operator.post(f"{page}try/", {**sent(filled), **values})
    call = waiting()
    texts = [posted(operator, action, page) for action in actions]
    assert sentence in "".join(texts)
    assert (sentence == OVER) == (OVER in "".join(texts))
    catch_up()
    waits = operator.get("/admin/t/acme/calls/?outcome=open").context["calls"]
    assert len(waits) == goes_on
    reply = answer(operator, asked, f"{page}try/", **ACCEPTED)
    if goes_on:
        assert "accept tea" in reply.content.decode()
        assert (rounds(call), ending(call)) == (["input_required", "complete"], "")
    else:
        text = reply.content.decode()
        if actions[-1] == "delete":
            assert (reply.status_code, NO_ACCESS in text) == (404, True)
        elif actions[-1] in ("disable", "archive"):
            assert (reply.status_code, "This trial has ended" in text) == (409, True)
            assert "no longer accepted. Nothing was run." in text
        else:
            assert ending(call) in text
        assert rounds(call) == ["input_required"]
        assert ending(call)
    # As for the definition of the tool that another page sends: the trial is over for good.
    again = answer(operator, asked, TRY, **ACCEPTED)
    assert "accept tea" not in again.content.decode() or goes_on
    assert len(rounds(call)) == 1 + goes_on


@pytest.mark.parametrize(
    ("change", "is_saved"),
    [
        ("closed", True),
        ("removed", False),
        ("no longer operator", True),
        ("no longer active", True),
    ],
)
def test_a_trial_ends_when_its_operator_loses_the_permission(
    operator, cast, acme, change, is_saved
):
    path = f"{tool(acme.tenant, published=True)}try/" if is_saved else TRY
    asked = begin(operator, path=path, item="tea")
    call, user = waiting(), cast.operator.user
    changes: dict[str, Callable[[], Any]] = {
        "closed": partial(close_tenant, acme.tenant, actor=ACTOR),
        "removed": partial(remove_member, acme.tenant, user, actor=ACTOR),
        "no longer operator": partial(set_member, acme.tenant, user, Role.AUDITOR, actor=ACTOR),
        "no longer active": partial(_deactivate, user),
    }
    changes[change]()
    assert answer(operator, asked, path, **ACCEPTED).status_code == 403
    assert rounds(call) == ["input_required"]
    assert ending(call) == (
        "The session of the operator has ended."
        if change == "no longer active"
        else "The operator may not try the tool any more, or it is gone."
    )


def csrf(browser: Client, address: str) -> dict[str, str]:
    """Return the hidden field of the forms at an address."""
    text = browser.get(address).content.decode()
    name = "csrfmiddlewaretoken"
    return {name: text.partition(f'name="{name}" value="')[2].partition('"')[0]}


@pytest.mark.parametrize(("is_saved", "back"), [(False, False), (False, True), (True, True)])
def test_a_trial_ends_with_the_session_of_its_operator(cast, acme, is_saved, back):
    """Also if the operator has signed in again, in another window."""
    browser = Client(enforce_csrf_checks=True)
    path = f"{tool(acme.tenant, published=True)}try/" if is_saved else TRY
    browser.force_login(cast.operator.user)
    filled = browser.post(path, {**form(name="order"), **csrf(browser, NEW)})
    values = {"_run": "1", "arguments-value-item": "tea"}
    asked = browser.post(path, {**sent(filled), **values})
    call = waiting()
    browser.session.flush()
    if back:
        signed_in = {"username": cast.operator.user.username, "password": PASSWORD}
        assert browser.post(LOGIN, {**csrf(browser, LOGIN), **signed_in}).status_code == 302
    refused = answer(browser, asked, path, **ACCEPTED)
    assert refused.status_code == 403
    assert "Nothing was run." in refused.content.decode()
    assert refused["X-Frame-Options"] == "SAMEORIGIN"
    assert rounds(call) == ["input_required"]
    assert ending(call) == "The session of the operator has ended."


def _deactivate(user: Any) -> None:
    user.is_active = False
    user.save()


def left(browser: Client, page: HttpResponse) -> HttpResponse:
    """Post what the page of the tool sends as it is left."""
    address = page.content.decode().partition('data-end-at="')[2].partition('"')[0]
    return browser.post(address, {"_end": sent(page)["_end"]})  # type: ignore[return-value]


def test_leaving_the_page_of_a_trial_records_it_as_cancelled(operator: Client) -> None:
    asked = begin(operator, item="tea")
    call = waiting()
    assert left(operator, asked).status_code == 204
    assert ending(call) == "The page of the trial was left."
    assert "The page of the trial was left." in answer(operator, asked, **ACCEPTED).content.decode()
    assert rounds(call) == ["input_required"]
    assert left(operator, asked).status_code == 204
    assert Entry.objects.filter(call=call, action=CALL_CANCELLED).count() == 1


def test_only_the_end_token_of_the_same_user_ends_a_trial(cast, browse, operator):
    asked = begin(operator, item="tea")
    call = waiting()
    assert left(browse(cast.owner), asked).status_code == 204
    for text in ("", str(call), sent(asked)["_trial"]):
        assert operator.post(f"{TRY}end/", {"_end": text}).status_code == 204
    assert operator.get(f"{TRY}end/").status_code == 405
    assert not ending(call)
    assert "accept tea" in answer(operator, asked, **ACCEPTED).content.decode()


@pytest.mark.parametrize("button", ["_stop", "_run"])
def test_stopping_a_trial_records_it_as_cancelled(operator: Client, button: str) -> None:
    asked = begin(operator, item="tea")
    call = waiting()
    operator.post(TRY, {**sent(asked, 1), button: "1"})
    assert ending(call) == "The operator stopped the trial."
