"""Fill a database with a crowd: `python -m bench.seed TENANTS TOOLS`, over `MCPHOST_HOME`.

Every tool is a copy of the demo's echo, published; rows are written directly, because a crowd by
way of the services would take hours.
"""

import sys
import uuid
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

import django

django.setup()

from django.db import transaction  # noqa: E402 - what follows needs django.setup()
from django.db.models import OuterRef, Subquery  # noqa: E402

from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion  # noqa: E402
from mcphost.catalogue.states import PrimitiveState  # noqa: E402
from mcphost.tenants.models import Tenant  # noqa: E402

BATCH = 500
Row = TypeVar("Row", Primitive, PrimitiveVersion)


def seed(tenants: int, tools: int) -> None:
    """Write `tenants` tenants with `tools` tools between them, evenly."""
    pattern = Primitive.objects.select_related("live").get(tenant__slug="demo", name="echo")
    functions = list(Grant.objects.filter(tenant__slug="demo").values_list("function", flat=True))
    per_tenant = tools // tenants
    crowd = (
        Tenant(id=uuid.uuid4(), slug=f"crowd-{number}", title=f"Crowd {number}")
        for number in range(tenants)
    )
    while batch := list(islice(crowd, BATCH // per_tenant or 1)):
        with transaction.atomic():
            Tenant.objects.bulk_create(batch)
            Grant.objects.bulk_create(
                Grant(tenant=tenant, function=name) for tenant in batch for name in functions
            )
            _publish(pattern, list(_copies(pattern, batch, per_tenant)))


def _copies(pattern: Primitive, tenants: list[Tenant], count: int) -> Iterator[Primitive]:
    draft = {"state": PrimitiveState.DRAFT, "live_id": None}
    for tenant in tenants:
        for number in range(count):
            name = "echo" if number == 0 else f"echo-{number}"
            yield _copy(pattern, tenant_id=tenant.id, name=name, **draft)


def _publish(pattern: Primitive, copies: list[Primitive]) -> None:
    """Drafts first, then their versions, then each tool pointed at its own: as publishing does."""
    assert pattern.live is not None, "the demo's echo is published"
    Primitive.objects.bulk_create(copies)
    PrimitiveVersion.objects.bulk_create(
        _copy(pattern.live, primitive_id=copy.id, number=1) for copy in copies
    )
    own = PrimitiveVersion.objects.filter(primitive=OuterRef("pk")).values("pk")
    tenants = {copy.tenant_id for copy in copies}
    Primitive.objects.filter(tenant__in=tenants).update(state=pattern.state, live=Subquery(own))


def _copy(row: Row, **changes: Any) -> Row:
    """A new row like `row`, with an id of its own."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return type(row)(**{**values, "id": uuid.uuid4(), **changes})


if __name__ == "__main__":
    seed(int(sys.argv[1]), int(sys.argv[2]))
