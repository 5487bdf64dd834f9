"""Compare a file with a tenant (its fields, grants and primitives), and apply the differences as one change.

A plan is made without a transaction: it may inspect scripts. Applying it is one short transaction, which
changes nothing if the tenant has changed since.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.catalogue import kinds
from mcphost.catalogue.batches import (
    Basis,
    Preparation,
    PreparedChange,
    read_basis,
    store,
)
from mcphost.catalogue.errors import InvalidPrimitiveError, NotInspectedError, StaleError
from mcphost.catalogue.models import Primitive
from mcphost.catalogue.services import grant_function
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenant_file.documents import Path, YamlDocument, read
from mcphost.tenant_file.errors import (
    MAX_PROBLEMS,
    FileNotInspectedError,
    FileProblem,
    InvalidFileError,
    MovedError,
    path_text,
)
from mcphost.tenant_file.file_format import SECTION_OF, TenantFile, read_file
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.fields import TenantFields, check_fields
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import snapshot
from mcphost.tenants.services import update_tenant

APPLIED: Final = "tenant.applied"
"""The audit action of a file that was applied."""
ALL_PERMISSIONS: Final = frozenset(Permission)


class PlannedChange(NamedTuple):
    """One difference: `verbs` are what will be recorded, such as created and published; `changed` are
    the fields that an edit changes. `missing` are secrets without which nothing is published."""

    section: str
    name: str
    verbs: Sequence[str]
    changed: Sequence[str] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a file would change. `digest` names this plan: of this file, for the tenant as it is now.

    `missing_secrets` are those that the file declares and the tenant does not have. `kept` are
    primitives that the file does not name and that stay.
    """

    digest: str
    changes: Sequence[PlannedChange]
    missing_secrets: Sequence[str]
    kept: Sequence[str]
    basis: Basis
    settings: TenantFields
    grants: Sequence[str]
    primitives: Sequence[PreparedChange]

    @property
    def changed_tools(self) -> Sequence[str]:
        """The names of the tools that the file creates, changes or archives."""
        return [
            change.row.name
            for change in self.primitives
            if change.row.primitive_type == PrimitiveType.TOOL.value
        ]


def make_plan(
    tenant_id: UUID, data: bytes, permissions: Collection[Permission] = ALL_PERMISSIONS
) -> Plan:
    """Compare a file with a tenant. `permissions` are those of the user who will apply the plan.

    Blocks while changed primitives are inspected. Raises InvalidFileError with all problems by line
    (FileNotInspectedError if the only ones are that scripts cannot be checked now), and Tenant.DoesNotExist.
    """
    document = read(data)
    return _Planner(document, read_file(document), read_basis(tenant_id)).plan(data, permissions)


def apply_plan(plan: Plan, actor: Actor, digest: str = "") -> None:
    """Make all changes of a plan, or none. `digest` is that of the plan that the user has looked at.

    Raises MovedError if the tenant has changed, or the digest is another one; PermissionDenied; and
    UnknownTenantError for a closed tenant.
    """
    if digest and digest != plan.digest:
        raise MovedError
    if not plan.changes:
        return
    try:
        _apply(plan, actor)
    except StaleError:
        raise MovedError from None


@transaction.atomic
def _apply(plan: Plan, actor: Actor) -> None:
    tenant = lock_open_tenant(plan.basis.tenant.pk, actor, Permission.EDIT_TOOLS)
    if _settings_of(tenant) != _settings_of(plan.basis.tenant):
        raise MovedError
    store(plan.basis, plan.primitives, actor)
    if plan.settings != _settings_of(tenant):
        update_tenant(tenant.pk, plan.settings, actor=actor)
    for function in plan.grants:
        grant_function(tenant.pk, function, actor)
    facts = {"digest": plan.digest, "changes": len(plan.changes)}
    record(APPLIED, actor=actor, tenant=tenant.pk, target=tenant.slug, facts=facts)


def _settings_of(tenant: Tenant) -> TenantFields:
    return snapshot(tenant).fields


class _Planner:
    """Makes one plan, and collects the problems of the file."""

    def __init__(self, document: YamlDocument, file: TenantFile, basis: Basis) -> None:
        self._document, self._file, self._basis = document, file, basis
        self._problems: list[FileProblem] = []
        self._uninspected = 0
        """How many of them are that something cannot be inspected now."""

    def plan(self, data: bytes, permissions: Collection[Permission]) -> Plan:
        settings = self._settings(permissions)
        grants = self._grants(permissions)
        preparation = Preparation(self._basis, grants, settings.outgoing_hosts)
        changes = [*self._changed(preparation), *self._pruned(preparation)]
        if self._problems:
            is_busy = len(self._problems) == self._uninspected
            raise (FileNotInspectedError if is_busy else InvalidFileError)(self._problems)
        unnamed = self._unnamed()
        changed_ids = {change.row.id for change in changes}
        return Plan(
            digest=_digest(self._basis, data),
            changes=tuple(self._planned(settings, grants, changes)),
            missing_secrets=sorted(
                self._file.secrets - {secret.name for secret in self._basis.secrets}
            ),
            kept=[f"{_section(row)}.{row.name}" for row in unnamed if row.id not in changed_ids],
            basis=self._basis,
            settings=settings,
            grants=grants,
            primitives=changes,
        )

    def _refuse(self, path: Path, message: str) -> None:
        line = self._document.line_of(path)
        self._problems.append(FileProblem(line, path_text(path), message))

    def _settings(self, permissions: Collection[Permission]) -> TenantFields:
        """Return the tenant's settings after the change."""
        before = _settings_of(self._basis.tenant)
        try:
            after = check_fields(replace(before, **self._file.settings))
        except InvalidError as error:
            for name, messages in error.problems.items():
                self._refuse(("tenant", name), " ".join(messages))
            return before
        if after != before and Permission.MANAGE_TENANT not in permissions:
            self._refuse(("tenant",), "Only owners may change the settings of the tenant.")
        return after

    def _grants(self, permissions: Collection[Permission]) -> Sequence[str]:
        """Return the functions that have yet to be granted."""
        new = [name for name in self._file.functions if name not in self._basis.grants]
        in_code = dict(kinds.functions()) if new else {}
        for name in new:
            path = ("functions", self._file.functions.index(name))
            if name not in in_code:
                self._refuse(path, f"There is no function {name[:200]!r} in the code.")
            elif Permission.GRANT_FUNCTIONS not in permissions:
                self._refuse(path, f"{name} is not granted to this tenant. Ask platform staff.")
        return sorted(set(new))

    def _changed(self, preparation: Preparation) -> Iterator[PreparedChange]:
        for path, desired in self._file.primitives:
            if len(self._problems) >= MAX_PROBLEMS:
                return  # more are not reported, and each check takes time
            try:
                change = preparation.prepare(desired)
            except InvalidPrimitiveError as error:
                if isinstance(error, NotInspectedError):
                    self._uninspected += len(error.problems)
                for field, messages in error.problems.items():
                    self._refuse((*path, *_members(field)), " ".join(messages))
            else:
                if change is not None:
                    yield change

    def _pruned(self, preparation: Preparation) -> Iterator[PreparedChange]:
        for row in self._unnamed() if self._file.prune else ():
            change = preparation.archive(row)
            if change is not None:
                yield change

    def _unnamed(self) -> Sequence[Primitive]:
        """Return the tenant's primitives that the file does not name, sorted."""
        named = {
            (desired.fields.primitive_type.value, desired.fields.name)
            for _, desired in self._file.primitives
        }
        return [row for key, row in sorted(self._basis.rows.items()) if key not in named]

    def _planned(
        self, settings: TenantFields, grants: Sequence[str], changes: Sequence[PreparedChange]
    ) -> Iterator[PlannedChange]:
        before = _settings_of(self._basis.tenant)
        names = [
            name
            for name in TenantFields.__dataclass_fields__
            if getattr(before, name) != getattr(settings, name)
        ]
        if names:
            yield PlannedChange("tenant", self._basis.tenant.slug, ["updated"], names)
        for function in grants:
            yield PlannedChange("functions", function, ["granted"])
        for row, _, entries, missing in changes:
            edited = next((facts.get("changed", ()) for _, facts in entries), ())
            verbs = [entry.verb for entry in entries]
            yield PlannedChange(_section(row), row.name, verbs, edited, missing)


def _section(row: Primitive) -> str:
    return SECTION_OF[PrimitiveType(row.primitive_type)]


def _members(field: str) -> Path:
    """Return the path of a field such as `config.request.headers.0`."""
    return tuple(int(part) if part.isdecimal() else part for part in field.split("."))


def _digest(basis: Basis, data: bytes) -> str:
    """Return SHA-256 in hex of a file and of all that the plan is based on."""
    rows = sorted(
        [str(key.id), key.state, str(key.live_id), str(key.updated_at)] for key in basis.keys
    )
    secrets = sorted(
        [secret.name, secret.rules.hosts, secret.rules.places] for secret in basis.secrets
    )
    settings = asdict(_settings_of(basis.tenant))
    parts = [
        str(basis.tenant.pk),
        hashlib.sha256(data).hexdigest(),
        rows,
        secrets,
        sorted(basis.grants),
        settings,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
