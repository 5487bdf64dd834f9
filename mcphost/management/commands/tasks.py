"""`manage.py tasks`: list, show, cancel and retry tasks."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.feed import nodes
from mcphost.serving.execution import cancelling
from mcphost.tasks import listing
from mcphost.tasks.listing import ListedQuestion, ListedTask
from mcphost.tenants.models import Tenant

ACTOR: Final = Actor.system("manage.py tasks")
_COLUMNS: Final = ("TASK", "TENANT", "TOOL", "STATUS", "AGE", "OWNER", "ATTEMPTS", "DUE (UTC)")
_QUESTIONS: Final = ("QUESTION", "METHOD", "STATE", "ROUND", "SENT (UTC)", "EXPIRES (UTC)")


class Command(BaseCommand):
    """Shows and changes tasks. Running processes are notified through the change log."""

    help = "List tasks, show one without its contents, cancel one, or try one again now."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listed = verbs.add_parser("list", help="list the tasks that have not expired")
        listed.add_argument("--tenant", help="a tenant's slug (default: all tenants)")
        listed.add_argument("--state", choices=listing.STATUSES)
        for verb, text in (
            ("show", "show where a task stands, and its questions without their contents"),
            ("cancel", "cancel a task, and the round that runs"),
            ("retry", "begin the next round of a task now that waits to be tried again"),
        ):
            verb_parser = verbs.add_parser(verb, help=text)
            verb_parser.add_argument(
                "task", type=_id, help="the id of the task, as shown by `list`"
            )
            if verb == "cancel":
                verb_parser.add_argument(
                    "--reason", required=True, help="why: the client is told, and it is recorded"
                )

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        getattr(self, f"_{verb}")(options)

    def _list(self, options: dict[str, Any]) -> None:
        tenant = None if options["tenant"] is None else _tenant(options["tenant"])
        slugs, names = _slugs(), nodes.names()
        tasks = listing.every(tenant, options["state"] or "")
        rows = [_cells(task, slugs, names) for task in tasks]
        if rows:
            self._print([_COLUMNS, *rows])
        else:
            self.stdout.write("No tasks.")

    def _show(self, options: dict[str, Any]) -> None:
        task = _find_task(options["task"])
        for name, cell in zip(_COLUMNS, _cells(task, _slugs(), nodes.names()), strict=True):
            self.stdout.write(f"{name.capitalize().replace('(utc)', '(UTC)')}: {cell or '-'}")
        for name, cell in (
            ("Call", str(task.call)),
            ("Round", str(task.round)),
            ("Last change (UTC)", _time(task.updated_at)),
            ("Expires (UTC)", _time(task.expires_at)),
        ):
            self.stdout.write(f"{name}: {cell}")
        questions = [_question_cells(question) for question in task.questions]
        if questions:
            self.stdout.write("")
            self._print([_QUESTIONS, *questions])

    def _cancel(self, options: dict[str, Any]) -> None:
        task = _find_task(options["task"])
        reason = cancelling.plain_reason(options["reason"])
        if not 1 <= len(reason) <= cancelling.MAX_REASON:
            raise CommandError(f"A reason has 1 to {cancelling.MAX_REASON} characters.")
        if not cancelling.cancel_task(task, reason, ACTOR):
            raise CommandError(f"Task {task.id.hex} has ended: it is {_find_task(task.id).status}.")
        self.stdout.write(f"Task {task.id.hex} is cancelled.")

    def _retry(self, options: dict[str, Any]) -> None:
        task = _find_task(options["task"])
        if not cancelling.retry_task(task, ACTOR):
            raise CommandError(
                f"Task {task.id.hex} cannot be retried: {_reason(_find_task(task.id))}."
            )
        self.stdout.write(f"Task {task.id.hex} is due now.")

    def _print(self, table: Sequence[Sequence[str]]) -> None:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            self.stdout.write("  ".join(map(str.ljust, cells, widths)).rstrip())


def _cells(task: ListedTask, slugs: dict[UUID, str], names: Mapping[UUID, str]) -> tuple[str, ...]:
    return (
        task.id.hex,
        slugs.get(task.tenant, str(task.tenant)),
        task.tool,
        task.status,
        _age(timezone.now() - task.created_at),
        _owner(task, names),
        str(task.attempts),
        _time(task.due_at),
    )


def _question_cells(question: ListedQuestion) -> tuple[str, ...]:
    return (
        question.key,
        question.method,
        question.state.value,
        str(question.round),
        _time(question.asked_at),
        _time(question.expires_at),
    )


def _reason(task: ListedTask) -> str:
    if task.works and task.open:
        return "it waits for an answer"
    if task.works:
        return f"it runs at {_owner(task, nodes.names())}"
    return f"it is {task.status}"


def _owner(task: ListedTask, names: Mapping[UUID, str]) -> str:
    return names.get(task.owner, str(task.owner)) if task.is_owned else ""


def _find_task(id: UUID) -> ListedTask:
    task = listing.find(id)
    if task is None:
        raise CommandError(f"There is no task {id.hex}, or it has expired.")
    return task


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(f"{text!r} is not the id of a task.") from None


def _tenant(slug: str) -> UUID:
    tenant_id = Tenant.objects.filter(slug=slug).values_list("id", flat=True).first()
    if tenant_id is None:
        raise CommandError(f"There is no tenant {slug!r}.")
    return tenant_id


def _slugs() -> dict[UUID, str]:
    return dict(Tenant.objects.values_list("id", "slug"))


def _age(age: timedelta) -> str:
    seconds = max(0, int(age.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"
