"""The pages of tasks: the list, one task, cancelling and retrying; and calls that are tasks."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import TASK_CANCELLED, TASK_RETRIED
from mcphost.calls.states import QuestionState
from mcphost.feed.nodes import heartbeat
from mcphost.runtime.call import Delivery
from mcphost.sealing.tokens import Purpose
from mcphost.serving.execution.stored_tasks import MESSAGE
from mcphost.tasks.models import Task
from mcphost.tasks.states import TaskState
from mcphost.vault import sealer
from tests.audit.recorded_calls import Story
from tests.cast import Cast
from tests.console.records.test_calls import badges, shown
from tests.console.tenant_data import Things, told
from tests.tasks.rows import a_question, a_task

TASKS = "/admin/t/acme/tasks/"
CALLS = "/admin/t/acme/calls/"

pytestmark = pytest.mark.django_db


def page_of(task: Task) -> str:
    return f"{TASKS}{task.call}/"


def listed(client: Client, query: str = "") -> list[str]:
    """Return the tools of the listed tasks."""
    page = client.get(f"{TASKS}{query}")
    assert page.status_code == 200
    return [each.tool for each in page.context["tasks"]]


def a_story(acme: Things, tool: str = "deploy") -> Story:
    """Return a call that has become a task in its first round; the second begins."""
    story = Story.of(acme.tenant, tool, at=timezone.now() - timedelta(minutes=5))
    story.play("start; end deferred")
    story.call = story.call._replace(delivery=Delivery.TASK)
    story.back()
    return story


def task_of(story: Story, **columns: Any) -> Task:
    return a_task(story.call.tenant, story.call.id, tool=story.call.target, **columns)


def test_tasks_are_listed_newest_first_with_state_process_and_questions(auditor, acme):
    now = timezone.now()
    story = a_story(acme)
    told(story)
    asks = task_of(story, created_at=now - timedelta(minutes=5))
    a_question(asks, "colour")
    a_question(asks, "size", state=QuestionState.ANSWERED)
    heartbeat.beat()
    a_task(acme.tenant, tool="ship", owner=heartbeat.id, attempts=2)
    assert listed(auditor) == ["ship", "deploy"]
    text = shown(auditor, TASKS)
    assert "waiting for an answer" in text
    assert "Colour" in text
    assert "Size" not in text
    assert story.call.principal.label in text
    assert auditor.get(TASKS).context["processes"][heartbeat.id] in text


def test_retry_is_offered_for_runnable_tasks_only(operator: Client, acme: Things) -> None:
    heartbeat.beat()
    idle, asks = a_task(acme.tenant), a_task(acme.tenant)
    runs = a_task(acme.tenant, owner=heartbeat.id)
    a_question(asks)
    ended = a_task(acme.tenant, state=TaskState.FAILED)
    offered = {
        each.id: [verb for verb in ("Retry…", "Cancel…") if verb in shown(operator, page_of(each))]
        for each in (idle, runs, asks, ended)
    }
    assert offered == {
        idle.id: ["Retry…", "Cancel…"],
        runs.id: ["Cancel…"],
        asks.id: ["Cancel…"],
        ended.id: [],
    }


def test_cancelling_and_retrying_say_which_task_it_is(operator: Client, acme: Things) -> None:
    task = a_task(acme.tenant)
    a_question(task, "approve_refund", author_key="approve_refund")
    page = operator.get(f"{page_of(task)}cancel/").content.decode()
    assert f"Cancel task of “{task.tool}”" in page
    started = f"{task.created_at:%Y-%m-%d %H:%M:%S} UTC"
    assert (
        f"This task of <code>{task.tool}</code> was started by an unknown caller at {started}."
        in page
    )
    assert "waits for an answer to “Approve refund”." in page
    assert "It is in round" in operator.get(f"{page_of(task)}retry/").content.decode()


def test_task_pages_show_no_sealed_data_and_no_task_id(auditor: Client, acme: Things) -> None:
    """The id of an anonymous caller's task is all that it takes to follow the task."""
    task = a_task(acme.tenant)
    a_question(task)
    for path in (TASKS, page_of(task)):
        page = auditor.get(path).content.decode()
        assert "sealed" not in page
        assert str(task.id) not in page
        assert task.id.hex not in page


def test_the_page_of_a_task_has_its_questions_and_the_rounds_of_its_call(auditor, acme):
    story = a_story(acme).play("start; ask colour")
    told(story)
    task = task_of(story)
    a_question(task, "colour", round=2)
    text = shown(auditor, page_of(task))
    for part in ("Round 1", "Round 2", "became a task", "waiting for an answer", "Colour"):
        assert part in text
    assert f"{CALLS}{story.call.id}/" in auditor.get(page_of(task)).content.decode()
    assert "Which colour?" not in text
    assert "not stored" not in text
    for verb in ("cancel/", "retry/"):
        assert verb not in auditor.get(page_of(task)).content.decode()
    call = shown(auditor, f"{CALLS}{story.call.id}/")
    assert "; then as a task, which takes the answers" in call


def test_an_operator_cancels_a_task(operator: Client, cast: Cast, acme: Things) -> None:
    story = a_story(acme).play("start; ask colour")
    told(story)
    task = task_of(story, round=2)
    a_question(task)
    path = f"{page_of(task)}cancel/"
    assert "This cannot be undone" in shown(operator, path)
    task.refresh_from_db()
    assert task.state == TaskState.WORKING
    for reason in ("", "  ", "x" * 301):
        refused = operator.post(path, {"reason": reason})
        assert list(refused.context["form"].errors) == ["reason"]
    task.refresh_from_db()
    assert task.state == TaskState.WORKING
    assert operator.post(path, {"reason": "The release\nis off"}).status_code == 302
    task.refresh_from_db()
    assert task.state == TaskState.CANCELLED
    context = task.id.bytes + MESSAGE
    text = sealer.unseal(Purpose.ROW, task.tenant, task.message, context=context)
    assert text.decode().endswith("The release is off")
    entry = Entry.objects.get(action=TASK_CANCELLED, call__isnull=False)
    assert entry.reason == "The release is off"
    assert (entry.tenant, entry.call) == (acme.tenant, task.call)
    assert (entry.target, entry.actor_id) == ("deploy", str(cast.operator.user.pk))
    logged = Entry.objects.get(action=TASK_CANCELLED, call=None)
    assert (logged.tenant, logged.actor_id) == (acme.tenant, entry.actor_id)
    assert logged.facts == {
        "tool": "deploy",
        "call": str(task.call),
        "reason": "The release is off",
    }
    name = cast.operator.user.get_username()
    for page in (page_of(task), f"{CALLS}{task.call}/"):
        assert f"The task was cancelled by {name}" in shown(operator, page)
        assert "The release is off" in shown(operator, page)
    assert ("plain", "cancelled") in badges(operator, f"{CALLS}{task.call}/")
    assert "No question is waiting" in shown(operator, "/admin/")


def test_an_ended_task_is_not_cancelled_and_no_entry_is_recorded(operator, acme):
    task = a_task(acme.tenant, state=TaskState.COMPLETED)
    reply = operator.post(f"{page_of(task)}cancel/", {"reason": "Late"}, follow=True)
    assert "The task had already ended." in reply.content.decode()
    assert not Entry.objects.filter(action=TASK_CANCELLED).exists()
    assert "Cancel…" not in reply.content.decode()


def test_an_operator_retries_a_paused_task(operator: Client, acme: Things) -> None:
    later = timezone.now() + timedelta(hours=1)
    task = a_task(acme.tenant, attempts=4, due_at=later)
    operator.post(f"{page_of(task)}retry/")
    task.refresh_from_db()
    assert task.attempts == 0
    assert task.due_at is not None
    assert task.due_at < later
    assert Entry.objects.get(action=TASK_RETRIED, call__isnull=False).call == task.call


def test_a_task_that_waits_for_input_responses_is_not_retried(
    operator: Client, acme: Things
) -> None:
    task = a_task(acme.tenant)
    a_question(task)
    reply = operator.post(f"{page_of(task)}retry/", follow=True)
    assert "The task cannot run now" in reply.content.decode()
    assert not Entry.objects.filter(action=TASK_RETRIED).exists()


def test_an_input_request_of_a_task_is_listed_until_its_response(
    auditor: Client, acme: Things
) -> None:
    story = a_story(acme).play("start; ask colour size")
    told(story)
    task = task_of(story)
    colour, _ = a_question(task, "colour#2", author_key="colour"), a_question(task, "size")

    def waiting() -> list[str]:
        return sorted(each.key for each, _ in auditor.get("/admin/").context["waiting"])

    assert waiting() == ["colour", "size"]
    assert "· task" in shown(auditor, "/admin/")
    colour.state = QuestionState.ANSWERED
    colour.save()
    assert waiting() == ["size"]
    task.delete()
    assert waiting() == []
