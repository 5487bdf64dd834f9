"""Tests of Try it: the document that runs a tool before it is saved or published."""

import re
from collections.abc import AsyncIterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.audit.records import ROUND_FINISHED
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive
from mcphost.console.middleware import FRAMING
from mcphost.console.primitives.played_clients import PRESETS
from mcphost.console.primitives.trial_results import blocks
from mcphost.console.primitives.trials import CARRIED, LOST, POLICY
from mcphost.routing import process
from mcphost.runtime.program import TaskSupport
from mcphost.serving.execution.trials import TrialResult
from mcphost.serving.user_slots import MAX_TRIALS, TRIALS
from mcphost.tenants.roles import Role
from mcphost.tenants.services import set_member
from tests.cast import ACTOR, PASSWORD, Cast
from tests.console.tenant_data import Things

NEW = "/admin/t/acme/tools/new/?kind=script"
TRY = "/admin/t/acme/tools/try/"
SCRIPT = '''
async def order(item: str, count: int = 1) -> str:
    """Order something."""
    progress(1, 2, "looking")
    log({"looked": item})
    answer = await ask("sure", "Really order " + item + "?", {"sure": bool})
    return answer["action"] + " " + item
'''
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HOSTILE = "<img src=x onerror=alert(1)>\u202e\u200b</pre><script>alert(1)</script>"
QUESTION = "Sure?\u202e\u200b</pre><script>alert(1)</script>"
"""A form may not hold markup that loads something."""

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("acme")]


@pytest.fixture
async def acme(acme: Things) -> AsyncIterator[Things]:
    """As everywhere, with a process that records."""
    process.start()
    yield acme
    await process.stop()


def form(code: str = SCRIPT, **others: Any) -> dict[str, Any]:
    """Return the form of a tool, as its page posts it."""
    return {"kind": "script", "name": "", "code": dedent(code).strip(), **others}


def sent(page: HttpResponse, nth: int = 0) -> dict[str, str]:
    """Return the hidden fields of a form on the page."""
    forms = re.findall(r"<form.*?</form>", page.content.decode(), re.DOTALL)
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', forms[nth])
    return {name: unescape(value) for name, value in found}


def text(page: HttpResponse) -> str:
    assert page.status_code == 200, page
    return unescape(page.content.decode())


def uncoloured(page: HttpResponse) -> str:
    return unescape(re.sub(r"</?span[^>]*>", "", page.content.decode()))


def begin(client: Client, code: str = SCRIPT, path: str = TRY, **values: Any) -> Any:
    """Try a script with these arguments; return the page of its first round."""
    page = client.post(path, form(code))
    filled = {f"arguments-value-{name}": value for name, value in values.items()}
    return client.post(path, {**sent(page), "_run": "1", **filled})


def answer(client: Client, page: Any, path: str = TRY, **values: Any) -> Any:
    return client.post(path, {**sent(page), **values})


DECLINED = {"answer-sure-action": "decline"}
CANCELLED = {"answer-sure-action": "cancel"}


def test_a_trial_validates_arguments_asks_for_input_and_continues(operator: Client) -> None:
    page = operator.post(TRY, form())
    assert 'name="arguments-value-item"' in text(page)
    assert "This field is required." in text(operator.post(TRY, {**sent(page), "_run": "1"}))
    as_json = {**sent(page), "_run": "1", "arguments-mode": "json"}
    assert "This is not JSON" in text(operator.post(TRY, {**as_json, "arguments-json": "{"}))
    asked = operator.post(TRY, {**as_json, "arguments-json": '{"item": "tea"}'})
    for part in ("Really order tea?", "looking", '"looked": "tea"'):
        assert part in text(asked)
    assert '"resultType": "input_required"' in uncoloured(asked)
    wrong = answer(operator, asked, **{"answer-sure-action": "accept"})
    assert "This field is required." in text(wrong)
    accepted = {"answer-sure-action": "accept", "answer-sure-value-sure": "true"}
    done = answer(operator, wrong, **accepted)
    for part in ("accept tea", "Round 2", "Run it again"):
        assert part in text(done)
    assert '"resultType": "complete"' in uncoloured(done)
    assert not Primitive.objects.filter(kind="script").exists()


def test_an_input_response_that_is_sent_twice_runs_the_round_once(operator: Client) -> None:
    asked = begin(operator, item="tea")
    pages = [answer(operator, asked, **CANCELLED) for _ in range(2)]
    assert ["cancel tea" in text(page) for page in pages] == [True, True]
    assert Entry.objects.filter(delivery="playground", action=ROUND_FINISHED).count() == 2


def test_an_invalid_draft_is_reported_and_a_get_request_runs_no_trial(
    operator: Client, acme: Things
):
    before = Entry.objects.count()
    for code, said in (("def", "code:"), ("def f() -> int:\n    return 'a'", "line 2")):
        page = operator.post(TRY, form(code))
        assert said in text(page).lower()
        assert CARRIED not in text(page)
    page = operator.post(TRY, {"kind": "python", "function": "probe.write"})
    assert "write is not one of the available choices" in text(page)
    for path in (TRY, f"/admin/t/acme/tools/{acme.tool}/try/"):
        assert operator.get(path, {"_run": "1", **form()}).status_code == 200
    assert Entry.objects.count() == before


def test_the_page_of_a_tool_runs_its_working_copy(operator: Client, acme: Things) -> None:
    path = f"/admin/t/acme/tools/{acme.tool}/try/"
    page = operator.get(path)
    done = operator.post(path, {**sent(page), "_run": "1", "arguments-value-text": "hello"})
    assert '<pre tabindex="0">hello</pre>' in text(done)
    entries = Entry.objects.filter(delivery="playground")
    assert {entry.target for entry in entries} == {"canary-acme-tool"}
    assert {entry.actor_label for entry in entries} == {"operator"}


def test_the_unsaved_form_of_a_saved_tool_is_run(operator: Client, acme: Things) -> None:
    fields = PrimitiveFields("order", {"code": SCRIPT.strip()}, kind="script", description="Order.")
    row = services.create(acme.tenant, fields, ACTOR)
    path = f"/admin/t/acme/tools/{row.id}/try/"
    asked = begin(operator, SCRIPT.replace("Really", "Surely"), path, item="tea")
    assert "Surely order tea?" in text(asked)
    services.publish(row.id, ACTOR)
    assert "decline tea" in text(answer(operator, asked, path, **DECLINED))
    assert Primitive.objects.get(pk=row.id).config["code"] == SCRIPT.strip()


def test_trial_pages_have_the_strict_csp_and_may_be_framed_by_the_console_only(
    operator, auditor, acme
):
    for page in (operator.get(TRY), operator.post(TRY, form()), begin(operator, item="tea")):
        assert page["Content-Security-Policy"] == POLICY
        assert page["X-Frame-Options"] == "SAMEORIGIN"
        assert "<script" not in page.content.decode()
        assert " style=" not in page.content.decode()
    assert (
        POLICY == "default-src 'none'; img-src 'self' data:; style-src 'self'; font-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    )
    for path, frames in (
        (NEW, True),
        (f"/admin/t/acme/tools/{acme.tool}/", True),
        ("/admin/t/acme/prompts/new/", False),
        ("/admin/t/acme/", False),
    ):
        around = operator.get(path)
        assert around["Content-Security-Policy"].endswith(FRAMING) is frames
        assert around["X-Frame-Options"] == "DENY"
        assert ("<iframe" in around.content.decode()) is frames
    assert b"<iframe" not in auditor.get(f"/admin/t/acme/tools/{acme.tool}/").content
    assert b'sandbox="allow-forms allow-same-origin' in operator.get(NEW).content
    assert b"allow-scripts" not in operator.get(NEW).content


def test_hostile_texts_of_a_tool_are_escaped_in_a_trial(operator: Client) -> None:
    code = f"""
    async def order(item: str) -> dict:
        \"\"\"Order.\"\"\"
        progress(1, 2, {HOSTILE!r})
        log({HOSTILE!r})
        await ask("k", {QUESTION!r}, {{"sure": bool}})
        return {{"said": {HOSTILE!r}}}
    """
    asked = begin(operator, code, item="tea")
    done = answer(operator, asked, **{"answer-k-action": "decline"})
    for page in (asked, done):
        raw = page.content.decode()
        assert "&lt;img src=x onerror" in raw
        assert "<img src=x" not in raw
        assert "<script" not in raw
        assert "\u202e" not in raw
        assert "⟨U+202E⟩" in raw
        assert "⟨U+200B⟩" in raw


def test_only_valid_images_are_shown_and_resource_links_are_not_clickable() -> None:
    content = [
        {"type": "image", "mimeType": "image/png", "data": PIXEL},
        {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="},
        {"type": "image", "mimeType": "image/png", "data": "PHN2Zz4="},
        {"type": "image", "mimeType": "image/png", "data": "a"},
        {"type": "resource_link", "name": "page", "uri": "javascript:alert(1)"},
    ]
    given = TrialResult(uuid4(), 1, 0.1, {"content": content}, received=[{"id": 1}])
    tool = {"name": "t", "version": "1", "task_support": TaskSupport.NEVER}
    context = {"tool": tool, "trial_result": given, "blocks": list(blocks(given.result or {}))}
    raw = render_to_string("console/primitives/trial.html", context)
    assert raw.count("<img") == 1
    assert f'src="data:image/png;base64,{PIXEL}"' in raw
    assert "javascript:alert(1)" in raw
    assert 'href="javascript' not in raw
    assert "nothing to show" in raw


def test_the_sealed_state_of_a_trial_is_valid_for_its_user_and_tenant_only(operator, cast, browse):
    asked = begin(operator, item="tea")
    other = browse(cast.owner).post(TRY, {**sent(asked), **DECLINED})
    in_globex = "/admin/t/globex/tools/try/"
    elsewhere = browse(cast.stranger).post(in_globex, {**sent(asked), **DECLINED})
    changed = operator.post(TRY, {**sent(asked), CARRIED: sent(asked)[CARRIED] + "x", **DECLINED})
    for page in (other, elsewhere, changed):
        assert page.status_code == 400
        assert LOST in unescape(page.content.decode())
    assert "decline tea" in text(answer(operator, asked, **DECLINED))


def test_concurrent_input_requests_are_answered_in_one_form(operator: Client) -> None:
    code = '''
    import asyncio


    async def three() -> str:
        """Ask three questions, and let a model answer a fourth."""
        given = await asyncio.gather(
            ask("a", "A?", {"action": str}), ask("a-value", "B?", {"x": str}), ask("c", "C?", {"n": int})
        )
        return " ".join(str(one["action"]) + str(one["content"]) for one in given)
    '''
    asked = begin(operator, code)
    assert asked.content.decode().count("<form") == 2
    responses = {
        "answer-a-action": "accept",
        "answer-a-value-action": "left",
        "answer-a%2Dvalue-action": "decline",
        "answer-c-action": "accept",
        "answer-c-value-n": "many",
    }
    wrong = answer(operator, asked, **responses)
    assert "Enter a" in text(wrong)
    assert 'value="left"' in text(wrong) or "\nleft</textarea>" in text(wrong)
    assert 'name="answer-a%2Dvalue-action" value="decline" checked' in text(wrong)
    done = answer(operator, wrong, **responses | {"answer-c-value-n": "3"})
    assert "accept{'action': 'left'} declineNone accept{'n': 3}" in text(done)
    assert "Round 2" in text(done)


def test_trials_are_limited_to_one_per_user_and_below_all_slots_per_tenant(operator, acme, cast):
    page = operator.post(TRY, form())
    run = {**sent(page), "_run": "1", "arguments-value-item": "tea"}
    with TRIALS.of(cast.operator.user.pk, cast.globex.id):
        busy = operator.post(TRY, run)
    assert (busy.status_code, busy["Retry-After"]) == (429, "2")
    assert "Another trial of yours runs" in unescape(busy.content.decode())
    with ExitStack() as running:
        for number in range(1, MAX_TRIALS):
            assert not running.enter_context(TRIALS.of(-number, cast.acme.id))
        refused = operator.post(TRY, run)
        assert refused.status_code == 429
        assert "other users of this tenant" in unescape(refused.content.decode())
        assert not running.enter_context(TRIALS.of(-9, cast.globex.id))
        assert "of other users run now" in unescape(operator.post(TRY, run).content.decode())
    assert "Really order" in text(operator.post(TRY, run))


def test_refusals_inside_the_trial_frame_may_be_framed(cast, operator, acme):
    """A role that ended, or a tool that is gone: the page for 403 may not be framed."""
    gone = operator.get(f"/admin/t/acme/tools/{uuid4()}/try/")
    set_member(acme.tenant, cast.operator.user, Role.AUDITOR, actor=ACTOR)
    refused = operator.post(TRY, form())
    assert (gone.status_code, refused.status_code) == (404, 403)
    for page in (gone, refused):
        assert page["Content-Security-Policy"] == POLICY
        assert page["X-Frame-Options"] == "SAMEORIGIN"
        assert "You have no access here any more" in page.content.decode()


def test_a_trial_frame_without_a_session_links_to_the_sign_in(cast: Cast, acme: Things) -> None:
    for path, after in (
        (TRY, "/admin/t/acme/tools/new/"),
        (f"/admin/t/acme/tools/{acme.tool}/try/", f"/admin/t/acme/tools/{acme.tool}/"),
        ("/admin/t/nowhere/tools/try/", "/admin/t/nowhere/tools/new/"),
    ):
        for page in (Client().get(path), Client().post(path, form())):
            assert (page.status_code, page["Content-Security-Policy"]) == (403, POLICY)
            assert page["X-Frame-Options"] == "SAMEORIGIN"
            told = page.content.decode()
            assert "Your session has ended" in told
            link = re.search(r'<a href="([^"]+)" target="_top">Sign in again</a>', told)
            client = Client()
            signed = client.post(link[1], {"username": "owner", "password": PASSWORD})
            assert signed["Location"] == after
    assert not Entry.objects.filter(delivery="playground").exists()


def test_the_operator_chooses_the_client_that_a_trial_plays(operator: Client) -> None:
    page = operator.post(TRY, form())
    assert "A client that can do everything (2026-07-28:" in text(page)
    run = {**sent(page), "_run": "1", "arguments-value-item": "tea"}
    refused = text(operator.post(TRY, {**run, "client-preset": "nothing"}))
    assert "needs a client with the capability 'elicitation.form'" in refused
    assert "Called by: A client that declares nothing" in re.sub("<[^>]+>", "", refused)
    old = {"client-preset": "custom", "client-revision": "2025-06-18"}
    chosen = operator.post(TRY, {**run, **old, "client-capabilities": ["forms", "pages"]})
    assert "Its revision does not have: pages" in text(chosen)
    assert "Really order tea?" in text(chosen)
    assert '"method": "elicitation/create"' in uncoloured(chosen)
    done = answer(operator, chosen, **DECLINED)
    assert "decline tea" in text(done)
    assert '<option value="2025-06-18" selected>' in text(done)
    again = operator.post(TRY, {**sent(done), "_run": "1", "arguments-value-item": "milk"})
    assert "A client of your choice" in text(again), "what is not sent stays as it was"
    wrong = operator.post(TRY, {**run, "client-preset": "telepathy"})
    assert "telepathy is not one of the available choices" in text(wrong)
    entries = Entry.objects.filter(delivery="playground", action=ROUND_FINISHED)
    assert {entry.revision for entry in entries} == {"2026-07-28", "2025-06-18"}


def test_the_clients_to_play_are_those_of_the_documents() -> None:
    documented = (Path(__file__).parents[3] / "docs" / "clients.md").read_text()
    for key, preset in PRESETS.items():
        named = re.findall(r"[a-zA-Z]+ \d+\.\d+(?:\.\d+)?", preset.title)
        assert named or key in ("everything", "nothing", "nothing-session")
        for version in (name.split()[-1] for name in named):
            assert version in documented
        assert preset.revision in documented


def test_rounds_are_a_conversation_with_its_messages_and_lead_to_the_record(
    operator: Client,
) -> None:
    asked = begin(operator, item="tea")
    accepted = {"answer-sure-action": "accept", "answer-sure-value-sure": "true"}
    done = answer(operator, asked, **accepted)
    shown = re.sub(r"\s+", " ", re.sub("<[^>]+>", "", text(done)))
    for part in (
        "Client The client calls draft.",
        "Server Progress: 1 of 2 looking",
        'Server Log, info: {"looked": "tea"}',
        "Server The tool asks: Really order tea?",
        'Client You answer sure: accept {"sure": true}',
        "Server The call is complete.",
        "A client carries it as requestState.",
    ):
        assert part in shown
    assert re.search(r"sealed: \d+ bytes, with key \w+. It expires 10 min after", shown)
    assert '"requestState": "(sealed)"' in uncoloured(done)
    call = Entry.objects.get(delivery="playground", action=ROUND_FINISHED, round=2).call
    assert f'href="/admin/t/acme/calls/{call}/"' in text(done)
    refused = begin(operator, SCRIPT.replace("Really", "Surely"), item="tea")
    wrong = answer(operator, refused, **{"answer-sure-action": "accept"})
    assert "The tool asks: Surely order tea?" in text(wrong), "also beside a form with mistakes"


def test_the_call_of_a_saved_tool_can_be_copied_without_a_token_and_without_secrets(
    operator: Client, acme: Things
) -> None:
    fields = PrimitiveFields("order", {"code": SCRIPT.strip()}, kind="script", description="Order.")
    row = services.create(acme.tenant, fields, ACTOR)
    path = f"/admin/t/acme/tools/{row.id}/try/"
    asked = begin(operator, SCRIPT, path, item="it's tea")
    done = text(answer(operator, asked, path, **DECLINED))
    assert "Authorization: Bearer YOUR_TOKEN" in done
    for part in ("elicitation_callback=answer", "client.callTool(", "mcphost console"):
        assert part in done
    assert "Copy as" not in text(begin(operator, item="tea")), "no client can call it"
