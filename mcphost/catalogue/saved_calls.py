"""Calls of a tool that operators saved, each with what is expected of it, to run them again after an edit.

What a call sends and expects is encrypted under its tenant's payload key, as recorded payloads are.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction

from mcphost.audit import services as audit
from mcphost.audit.ports import UnreadablePayloadError
from mcphost.audit.records import Actor
from mcphost.catalogue.errors import CatalogueError, UnknownError
from mcphost.catalogue.models import MAX_SAVED_NAME, Primitive, SavedCall
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.payloads import VaultPayloadCipher

MAX_PER_TOOL: Final = 30
MAX_BYTES: Final = 64 * 1024
"""The largest saved call, as JSON."""


class SavedCallError(CatalogueError):
    """The call cannot be saved; the message says why."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a call must give: how it ends, and if set, a text in its result and its structured content."""

    outcome: str
    contains: str = ""
    structured: Any = None


@dataclass(frozen=True, slots=True)
class SavedRequest:
    """What is sent: by which client, with which arguments, and the responses of each round, by key.

    `client` is as the console carries it.
    """

    client: Mapping[str, Any]
    arguments: Mapping[str, Any]
    answers: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


class LastRun(NamedTuple):
    """The last run of a saved call: whether it gave what is expected, and its call, if one was recorded."""

    at: datetime
    passed: bool
    call: UUID | None = None


class SavedCallRow(NamedTuple):
    """A saved call. `request` and `expectation` are None if their key no longer exists; `last_run` before it ran."""

    id: UUID
    name: str
    saved_by: str
    saved_at: datetime
    request: SavedRequest | None
    expectation: Expectation | None
    last_run: LastRun | None = None


def saved_calls(tool: UUID) -> tuple[SavedCallRow, ...]:
    """Return the saved calls of a tool, by name."""
    rows = SavedCall.objects.filter(primitive=tool).select_related("primitive")
    return tuple(map(_row_of, rows))


def count(tool: UUID) -> int:
    """Return how many saved calls a tool has."""
    return SavedCall.objects.filter(primitive=tool).count()


def saved_call(tool: UUID, id: UUID) -> SavedCallRow | None:
    """Return one of them."""
    rows = SavedCall.objects.filter(primitive=tool, pk=id).select_related("primitive")
    return next(map(_row_of, rows), None)


@transaction.atomic
def save_call(
    tool: UUID, name: str, request: SavedRequest, expectation: Expectation, actor: Actor
) -> None:
    """Save a call under a name, in place of the one with that name.

    Raises SavedCallError, UnknownError, VaultError, PermissionDenied if the user no longer edits the
    tenant's tools, and UnknownTenantError.
    """
    primitive = _locked(tool, actor)
    if not 0 < len(name) <= MAX_SAVED_NAME:
        raise SavedCallError(f"A name has 1 to {MAX_SAVED_NAME} characters.")
    content = json.dumps({"request": asdict(request), "expectation": asdict(expectation)}).encode()
    if len(content) > MAX_BYTES:
        raise SavedCallError(
            f"The call has {len(content):,} bytes, and a saved one may have {MAX_BYTES:,}."
        )
    saved = SavedCall.objects.filter(primitive=primitive)
    if not saved.filter(name=name).exists() and saved.count() >= MAX_PER_TOOL:
        raise SavedCallError(f"The tool has {MAX_PER_TOOL} saved calls already. Delete one first.")
    sealed = VaultPayloadCipher().commit_and_seal(primitive.tenant_id, content)
    SavedCall.objects.update_or_create(
        primitive=primitive,
        name=name,
        defaults={
            "key_id": sealed.key_id,
            "content": sealed.ciphertext,
            "saved_by": actor.label,
            "ran_at": None,
            "passed": None,
            "ran_call": None,
        },
    )
    _record("saved_call.saved", primitive, name, actor)


def note_run(saved: SavedCallRow, run: LastRun) -> None:
    """Keep how a run ended, unless the call was saved again meanwhile. No audit entry: the run has records of its own."""
    unchanged = SavedCall.objects.filter(pk=saved.id, saved_at=saved.saved_at)
    unchanged.update(ran_at=run.at, passed=run.passed, ran_call=run.call)


@transaction.atomic
def delete_call(tool: UUID, id: UUID, actor: Actor) -> None:
    """Delete a saved call. Raises as `save_call`; UnknownError also if it is gone."""
    primitive = _locked(tool, actor)
    row = SavedCall.objects.filter(primitive=primitive, pk=id).first()
    if row is None:
        raise UnknownError("saved call", id)
    row.delete()
    _record("saved_call.deleted", primitive, row.name, actor)


def _locked(tool: UUID, actor: Actor) -> Primitive:
    """Return the tool, with its tenant locked: it exists until the transaction ends."""
    rows = Primitive.objects.filter(pk=tool)
    tenant_id = rows.values_list("tenant_id", flat=True).first()
    if tenant_id is not None:
        lock_open_tenant(tenant_id, actor, Permission.EDIT_TOOLS)
    row = rows.first()  # after the lock: it may have been deleted meanwhile
    if row is None:
        raise UnknownError("primitive", tool)
    return row


def _row_of(row: SavedCall) -> SavedCallRow:
    request, expectation = None, None
    try:
        tenant = row.primitive.tenant_id
        content = json.loads(VaultPayloadCipher().open(tenant, row.key_id, bytes(row.content)))
        request = SavedRequest(**content["request"])
        expectation = Expectation(**content["expectation"])
    except UnreadablePayloadError:
        pass  # its key was destroyed
    last_run = None
    if row.ran_at is not None and row.passed is not None:
        last_run = LastRun(row.ran_at, row.passed, row.ran_call)
    return SavedCallRow(
        row.pk, row.name, row.saved_by, row.saved_at, request, expectation, last_run
    )


def _record(action: str, primitive: Primitive, name: str, actor: Actor) -> None:
    audit.record(
        action,
        actor=actor,
        tenant=primitive.tenant_id,
        target=primitive.name,
        facts={"name": name},
    )
