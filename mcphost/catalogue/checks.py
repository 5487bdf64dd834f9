"""System checks of what tenants offer: warnings, so a broken primitive stops nothing else."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.apps.config import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DEFAULT_DB_ALIAS, DatabaseError, transaction

from mcphost.catalogue import kinds, selectors
from mcphost.kinds.python.kind import python_kind
from mcphost.tenants.models import Tenant

MAX_SHOWN = 100


@register("mcphost")
def check_kinds(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Report what each kind finds wrong with its environment, e.g. a broken file in `tools/`."""
    kinds.discover()
    return [
        Warning(str(problem), obj=name, id="mcphost.catalogue.W001")
        for name, kind in kinds.KINDS.items()
        for problem in kind.check()
    ]


@register("mcphost")
def check_code(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Report what the code of functions that are served will do, and its callers will not expect."""
    kinds.discover()
    return [
        Warning(str(note), obj=python_kind.name, id="mcphost.tools.W001")
        for note in python_kind.notes()
    ]


@register("mcphost", Tags.database)
def check_published(
    app_configs: Sequence[AppConfig] | None = None,
    databases: Sequence[str] | None = None,
    **options: Any,
) -> list[CheckMessage]:
    """Report what is published and cannot be served, or is refused by large clients: at most MAX_SHOWN
    problems of each."""
    if DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    kinds.discover()
    try:
        with transaction.atomic():
            return [
                *(
                    Warning(
                        f"The published {problem.primitive_type.value} {problem.name} is not served: "
                        f"{problem.message}",
                        obj=f"tenant {problem.tenant_id}",
                        id="mcphost.catalogue.W002",
                    )
                    for problem in islice(selectors.problems_of(Tenant.objects.open()), MAX_SHOWN)
                ),
                *(
                    Warning(
                        f"Some clients refuse the published tool {refusal.name}. {refusal.message}",
                        obj=f"tenant {refusal.tenant_id}",
                        id="mcphost.catalogue.W003",
                    )
                    for refusal in islice(selectors.refusals_of(Tenant.objects.open()), MAX_SHOWN)
                ),
            ]
    except DatabaseError:
        # The tables do not exist or are not up to date: `migrate` runs these checks first.
        return []
