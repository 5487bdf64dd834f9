"""`manage.py tenant`: the configuration of a tenant as a file."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.kinds.script.kind import script_kind
from mcphost.serving.execution import trials
from mcphost.tenant_file.errors import InvalidFileError, TenantFileError
from mcphost.tenant_file.exports import export
from mcphost.tenant_file.plans import Plan, apply_plan, make_plan
from mcphost.tenants.models import Tenant

ACTOR = Actor.system("manage.py tenant")


class Command(BaseCommand):
    """Exports the file of a tenant, shows what a file would change, applies one."""

    help = "Export a tenant's configuration as a file, show what a file would change, apply one."
    requires_system_checks = ["mcphost"]  # Django's own load all pages of the console

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        exported = verbs.add_parser("export", help="print the tenant's file")
        exported.add_argument("tenant", help="the tenant's slug")
        plan = verbs.add_parser("plan", help="show what a file would change; change nothing")
        apply = verbs.add_parser("apply", help="make all changes of a file, or none")
        for parser_of_file in (plan, apply):
            parser_of_file.add_argument("tenant", help="the tenant's slug")
            parser_of_file.add_argument("file", help="the file; - for the standard input")
        apply.add_argument(
            "--digest", default="", help="only if the plan is still the one with this digest"
        )

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        kinds.discover()
        tenant = Tenant.objects.open().filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"there is no open tenant {options['tenant']!r}")
        if verb == "export":
            self.stdout.write(export(tenant.pk), ending="")
            return
        try:
            with script_kind.sandbox.check_slots.without_rate():
                plan = make_plan(tenant.pk, _read(options["file"]))
            if verb == "apply":
                apply_plan(plan, ACTOR, options["digest"])
                trials.end_all(tenant.pk, plan.changed_tools, trials.FILE_APPLIED, ACTOR)
        except InvalidFileError as error:
            raise CommandError(f"{options['file']} cannot be applied:\n{error}") from None
        except TenantFileError as error:
            raise CommandError(str(error)) from None
        for line in _lines(plan, verb):
            self.stdout.write(line)


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from None


def _lines(plan: Plan, verb: str) -> Iterator[str]:
    for change in plan.changes:
        changed = f" ({', '.join(change.changed)})" if change.changed else ""
        verbs = ", ".join(change.verbs) or "unchanged"
        yield f"{change.section}.{change.name}: {verbs}{changed}"
        if change.missing:
            yield f"  not published: store the secret {', '.join(change.missing)} first"
    for secret in plan.missing_secrets:
        yield f"secrets.{secret}: not stored. Store it under Secrets."
    if plan.kept:
        yield f"Not in the file, and kept: {', '.join(plan.kept)}"
    if not plan.changes:
        yield "Nothing to change."
    elif verb == "apply":
        yield f"Applied {len(plan.changes)} changes."
    else:
        yield f"{len(plan.changes)} changes. Digest of this plan: {plan.digest}"
