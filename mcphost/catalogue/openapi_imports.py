"""Apply an import of an OpenAPI document: create and change its tools, all or none."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.catalogue import imported, validation
from mcphost.catalogue.errors import CatalogueError, InvalidPrimitiveError
from mcphost.catalogue.import_rows import OperationRow
from mcphost.catalogue.validation import Inspected
from mcphost.kinds.http.openapi_places import place_in_document
from mcphost.protocol.json_values import check_json

MAX_SELECTED: Final = 100
"""The most operations that are created or changed at once: each has several fields."""


class MissingSecret(NamedTuple):
    """A secret that is to be stored, and the hosts that it is for."""

    name: str
    hosts: Sequence[str]


def missing_secrets(
    rows: Sequence[OperationRow], secrets: Sequence[str]
) -> Sequence[MissingSecret]:
    """Return the secrets that the selected operations need and the tenant has not."""
    hosts: dict[str, set[str]] = {}
    for row in rows:
        for name in row.secrets:
            if name not in secrets:
                hosts.setdefault(name, set()).add(urlsplit(row.found_operation.url).netloc)
    return [MissingSecret(name, sorted(of_name)) for name, of_name in hosts.items()]


def unfit(rows: Sequence[OperationRow]) -> str:
    """Return why these cannot be imported together; empty if they can."""
    if not rows:
        return "Choose at least one operation."
    if len(rows) > MAX_SELECTED:
        return f"Choose at most {MAX_SELECTED} operations at a time."
    return ""


def is_whole_address(url: str) -> bool:
    """Whether the address of an API has a scheme and a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def inspect_rows(tenant: UUID, rows: Sequence[OperationRow]) -> Sequence[Inspected | None]:
    """Check the tools that are to be created and changed; note the problems of each that is refused,
    which is None. It takes time: call it outside of transactions."""
    return [_inspect_row(tenant, row) for row in rows]


def apply_rows(
    tenant: UUID,
    rows: Sequence[OperationRow],
    inspected: Sequence[Inspected | None],
    actor: Actor,
) -> bool:
    """Create and change all, or nothing, and then note the problems of each. Return whether it did."""
    with transaction.atomic():
        for row, fields in zip(rows, inspected, strict=True):
            if fields is not None:
                with _note_problems(row):
                    _write(tenant, row, fields, actor)
        has_problems = any(row.problems for row in rows)
        transaction.set_rollback(has_problems)
    return not has_problems


def check_rows(
    tenant: UUID,
    rows: Sequence[OperationRow],
    inspected: Sequence[Inspected | None],
    actor: Actor,
) -> None:
    """Note the problems that `apply_rows` would have, and change nothing."""
    with transaction.atomic():
        apply_rows(tenant, rows, inspected, actor)
        transaction.set_rollback(True)


def _write(tenant: UUID, row: OperationRow, fields: Inspected, actor: Actor) -> None:
    if row.tool is None:
        imported.create(tenant, fields, row.document_definition.stored, actor)
    else:
        imported.change(row.tool, fields, row.document_definition.stored, actor)


def _inspect_row(tenant: UUID, row: OperationRow) -> Inspected | None:
    fields = row.fields
    row.problems = check_json(row.document_definition.stored) or check_json(fields.config)
    if not row.problems:
        with _note_problems(row):
            return validation.inspect(tenant, fields)
    return None


@contextmanager
def _note_problems(row: OperationRow) -> Iterator[None]:
    """Note the problems of an operation that is refused."""
    try:
        yield
    except InvalidPrimitiveError as refusal:
        row.problems = []
        for path, sentences in refusal.problems.items():
            field, *steps = path.split(".")
            part = place_in_document(steps, row.fields.config) if field == "config" else field
            label = f"{part[:1].upper()}{part[1:]}: " if part else ""
            row.problems += [f"{label}{text}" for text in sentences]
    except CatalogueError as refusal:
        row.problems = [str(refusal)]
