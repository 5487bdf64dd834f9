"""`manage.py tasks`."""

from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.calls.ownership import NO_OWNER
from mcphost.calls.states import QuestionState
from mcphost.feed.models import Change
from mcphost.sealing.tokens import Purpose
from mcphost.serving.execution.stored_tasks import MESSAGE
from mcphost.tasks.changes import CANCELLED, CHANGED, DUE
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tasks.states import TaskState
from mcphost.vault import sealer
from mcphost.vault.services import ensure_ring, ensure_tenant
from tests.cast import Cast
from tests.tasks.rows import LONG_AGO, SECRET, process
from tests.tasks.rows import a_question as question
from tests.tasks.rows import a_task as task

pytestmark = pytest.mark.django_db


def run(*words: str) -> list[str]:
    out = StringIO()
    call_command("tasks", *words, stdout=out)
    return out.getvalue().splitlines()


def refused(*words: str) -> str:
    with pytest.raises(CommandError) as raised:
        run(*words)
    return str(raised.value)


def news(row: Task) -> list[str]:
    """What was announced of the task."""
    found = Change.objects.filter(object_id=row.id.hex, tenant=row.tenant).order_by("seq")
    return list(found.values_list("name", flat=True))


def entry(row: Task, action: str) -> Entry:
    """The only entry of an action in the record of a call, which must not hold the id of the task."""
    found = Entry.objects.get(action=action, call__isnull=False)
    assert (found.tenant, found.call, found.target) == (row.tenant, row.call, row.tool)
    assert (found.actor_kind, found.actor_label) == ("system", "manage.py tasks")
    assert row.id.hex not in f"{found.target}{found.facts}{found.reason}"
    return found


def test_list_filters_by_tenant_and_state(cast: Cast) -> None:
    working, asking, done = (task(cast.acme.id) for _ in range(3))
    question(asking)
    question(working, key="size", state=QuestionState.ANSWERED)
    Task.objects.filter(id=done.id).update(state=TaskState.COMPLETED)
    foreign = task(cast.globex.id)
    for words, wanted in (
        (("--tenant", "globex"), [foreign]),
        (("--tenant", "acme", "--state", "working"), [working]),
        (("--state", "waiting"), [asking]),
        (("--state", "completed"), [done]),
        (("--state", "cancelled"), []),
    ):
        lines = run("list", *words)
        ids = [line.split()[0] for line in lines if line != "No tasks."]
        assert ids == (["TASK", *(row.id.hex for row in wanted)] if wanted else []), words
    assert refused("list", "--tenant", "nowhere") == "There is no tenant 'nowhere'."


def test_expired_tasks_are_not_listed_and_cannot_be_cancelled_or_retried(cast: Cast) -> None:
    row = task(cast.acme.id, expires_at=timezone.now() - timedelta(seconds=1))
    assert run("list") == ["No tasks."]
    for words in (("show",), ("cancel", "--reason", "why"), ("retry",)):
        assert "has expired" in refused(words[0], row.id.hex, *words[1:])
    assert refused("show", "nonsense") == "'nonsense' is not the id of a task."


def test_show_lists_the_input_requests_but_no_contents(cast: Cast) -> None:
    row = task(cast.acme.id, message=SECRET, outcome=SECRET)
    question(row, state=QuestionState.ANSWERED, answer=SECRET)
    question(row, key="size#2", round=2)
    lines = run("show", row.id.hex)
    assert f"Task: {row.id.hex}" in lines
    assert "Status: waiting" in lines
    assert f"Call: {row.call}" in lines
    asked = [line.split()[:4] for line in lines[-2:]]
    assert asked == [
        ["colour", "elicitation/create", "answered", "1"],
        ["size#2", "elicitation/create", "open", "2"],
    ]
    assert SECRET not in "".join(lines)


def test_cancel_ends_a_task_that_runs_in_another_process(cast: Cast) -> None:
    ensure_ring()
    ensure_tenant(cast.acme.id)
    row = task(cast.acme.id, owner=process("one:1"), message=SECRET)
    question(row)
    told = ("--reason", "The printer\x1b is\nbroken.")
    assert run("cancel", str(row.id), *told) == [f"Task {row.id.hex} is cancelled."]
    after = Task.objects.get(id=row.id)
    assert (after.state, after.owner) == (TaskState.CANCELLED, NO_OWNER)
    assert SECRET not in f"{after.request}{after.journal}{after.message}"
    assert after.nonce != row.nonce
    assert not TaskQuestion.objects.exists()
    assert news(row) == [CHANGED, CANCELLED]
    assert entry(row, "task.cancelled").reason == "The printer is broken."
    context = row.id.bytes + MESSAGE
    said = sealer.unseal(Purpose.ROW, row.tenant, after.message, context=context)
    assert said.decode().endswith("operator of the server: The printer is broken.")
    assert "has ended: it is cancelled" in refused("cancel", row.id.hex, *told)
    entry(row, "task.cancelled")


@pytest.mark.parametrize("state", [one for one in TaskState if one is not TaskState.WORKING])
def test_cancel_and_retry_refuse_a_finished_task(cast: Cast, state: TaskState) -> None:
    row = task(cast.acme.id, state=state, outcome=SECRET)
    for words in (("cancel", "--reason", "why"), ("retry",)):
        assert f"it is {state}" in refused(words[0], row.id.hex, *words[1:])
    assert Task.objects.filter(id=row.id, state=state, outcome=SECRET).exists()
    assert (news(row), Entry.objects.filter(call=row.call).count()) == ([], 0)


def test_retry_makes_a_task_with_a_later_attempt_due_at_once(cast: Cast) -> None:
    later = timezone.now() + timedelta(minutes=10)
    row = task(cast.acme.id, due_at=later, attempts=4)
    assert run("retry", row.id.hex) == [f"Task {row.id.hex} is due now."]
    after = Task.objects.get(id=row.id)
    assert after.due_at is not None
    assert after.due_at < later
    assert after.attempts == 0
    assert news(row) == [DUE]
    entry(row, "task.retried")


def test_retry_frees_the_task_of_a_dead_process(cast: Cast, settings: Settings) -> None:
    settings.MCPHOST_ALONE = False
    dead = process("two:2", dead=True)
    old = timezone.now() - LONG_AGO
    rows = [task(cast.acme.id, owner=owner, taken_at=old) for owner in (dead, uuid4())]
    for row in rows:
        run("retry", row.id.hex)
        after = Task.objects.get(id=row.id)
        assert (after.owner, after.due_at is None) == (NO_OWNER, False)


def test_retry_refuses_a_task_that_runs_or_waits_for_a_response(
    cast: Cast, settings: Settings
) -> None:
    settings.MCPHOST_ALONE = False
    old = timezone.now() - LONG_AGO
    runs = task(cast.acme.id, owner=process("one:1"), taken_at=old)
    young = task(cast.acme.id, owner=process("two:2", dead=True))
    asks = task(cast.acme.id)
    question(asks)
    assert "it runs at one:1" in refused("retry", runs.id.hex)
    assert "it runs at two:2 (dead)" in refused("retry", young.id.hex)
    assert "it waits for an answer" in refused("retry", asks.id.hex)
    assert not Task.objects.exclude(due_at=None).exists()
    settings.MCPHOST_ALONE = True  # where one process serves, no owner counts as dead
    stranger = task(cast.acme.id, owner=uuid4(), taken_at=old)
    assert f"it runs at {stranger.owner}" in refused("retry", stranger.id.hex)


@pytest.mark.parametrize("reason", ["", " \n", "x" * 301])
def test_cancel_requires_a_reason_of_bounded_length(cast: Cast, reason: str) -> None:
    row = task(cast.acme.id)
    assert "A reason has 1 to 300 characters" in refused("cancel", row.id.hex, "--reason", reason)
    with pytest.raises(CommandError, match="--reason"):
        run("cancel", row.id.hex)
    assert Task.objects.get(id=row.id).state == TaskState.WORKING
    assert not Entry.objects.filter(action="task.cancelled").exists()
