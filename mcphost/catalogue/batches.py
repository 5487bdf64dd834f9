"""Many changes of a tenant's primitives at once: prepared without a transaction, then stored in a short one.

What takes long (inspecting, compiling, digests) is done by `Preparation`, on what `read_basis` returned.
`store` compares that basis with the tenant, and writes rows, entries and announcements by a few statements.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from mcphost.audit import services as audit
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, outgoing, validation
from mcphost.catalogue.compiling import Ready
from mcphost.catalogue.errors import InvalidPrimitiveError, StaleError
from mcphost.catalogue.fields import (
    FIELD_NAMES,
    PrimitiveFields,
    changed,
    fingerprint,
    working_copy,
)
from mcphost.catalogue.models import Primitive, PrimitiveVersion
from mcphost.catalogue.ordering import in_order, order_of
from mcphost.catalogue.selectors import granted_references
from mcphost.catalogue.services import new_version, news_of, working_digest
from mcphost.catalogue.states import PrimitiveState, PrimitiveVerb, following
from mcphost.feed.services import announce_all
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.secrets.selectors import SecretRow, locked_secrets, tenant_secrets

ENTRY_VERBS: Final[Mapping[PrimitiveVerb, str]] = {
    PrimitiveVerb.PUBLISH: "published",
    PrimitiveVerb.DISABLE: "disabled",
    PrimitiveVerb.ENABLE: "enabled",
    PrimitiveVerb.ARCHIVE: "archived",
    PrimitiveVerb.RESTORE: "restored",
}
MAX_AT_ONCE: Final = 500
"""Rows of one statement."""

_PATHS: Final[Mapping[tuple[PrimitiveState, PrimitiveState], Sequence[PrimitiveVerb]]] = {
    (PrimitiveState.PUBLISHED, PrimitiveState.DISABLED): (PrimitiveVerb.DISABLE,),
    (PrimitiveState.PUBLISHED, PrimitiveState.ARCHIVED): (PrimitiveVerb.ARCHIVE,),
    (PrimitiveState.DISABLED, PrimitiveState.PUBLISHED): (PrimitiveVerb.ENABLE,),
    (PrimitiveState.DISABLED, PrimitiveState.ARCHIVED): (PrimitiveVerb.ARCHIVE,),
    (PrimitiveState.ARCHIVED, PrimitiveState.PUBLISHED): (
        PrimitiveVerb.RESTORE,
        PrimitiveVerb.ENABLE,
    ),
    (PrimitiveState.ARCHIVED, PrimitiveState.DISABLED): (PrimitiveVerb.RESTORE,),
}
"""The steps from one state to another, without a new version."""
_CHANGING: Final = tuple(
    field.name
    for field in Primitive._meta.concrete_fields
    if field.name not in {"id", "tenant", "primitive_type", "name", "created_at"}
)
_NO_DRAFT: Final = (
    "It was published, so it cannot be a draft again. It can be disabled or archived."
)
_OTHER_KIND: Final = (
    "The kind of a {} cannot be changed. Use another name, and archive this one (delete a draft)."
)
_OTHER_URI: Final = (
    "It was published at another URI, which cannot be changed. Use another name for the new one."
)


class DesiredPrimitive(NamedTuple):
    """A primitive as it is to be: `fields` are those of what is served, or was last, and of a draft.
    `draft` is the working copy, if it is another one."""

    fields: PrimitiveFields
    state: PrimitiveState = PrimitiveState.PUBLISHED
    draft: PrimitiveFields | None = None


class RowKey(NamedTuple):
    """Columns of a primitive, one of which differs after each change of it."""

    id: UUID
    state: str
    live_id: UUID | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Basis:
    """What changes are prepared on: a tenant's rows by type and name, and what they may use.

    `numbers` are those of the newest versions, by primitive.
    """

    tenant: Tenant
    rows: Mapping[tuple[str, str], Primitive]
    numbers: Mapping[UUID, int]
    secrets: Sequence[SecretRow]
    grants: frozenset[str]

    @property
    def keys(self) -> frozenset[RowKey]:
        return frozenset(
            RowKey(row.id, row.state, row.live_id, row.updated_at) for row in self.rows.values()
        )

    @property
    def secret_rules(self) -> frozenset[tuple[str, Any]]:
        return frozenset((row.name, row.rules) for row in self.secrets)


class PreparedEntry(NamedTuple):
    """One entry of the audit log: `created`, `published`, …"""

    verb: str
    facts: Mapping[str, Any]


class PreparedChange(NamedTuple):
    """A primitive that changes: its row as it will be stored, a new version, and its entries in order.

    `missing` are the secrets without which the version is not published.
    """

    row: Primitive
    version: PrimitiveVersion | None
    entries: Sequence[PreparedEntry]
    missing: Sequence[str] = ()


def read_basis(tenant_id: UUID) -> Basis:
    """Read what a tenant has. Raises Tenant.DoesNotExist."""
    tenant = Tenant.objects.get(pk=tenant_id)
    rows = Primitive.objects.filter(tenant=tenant_id).select_related("live")
    versions = PrimitiveVersion.objects.filter(primitive__tenant=tenant_id).order_by()
    return Basis(
        tenant,
        {(row.primitive_type, row.name): row for row in rows},
        dict(versions.values_list("primitive_id").annotate(Max("number"))),
        tenant_secrets(tenant_id),
        granted_references(tenant_id),
    )


class Preparation:
    """Prepares changes of one tenant, one after the other.

    `granting` are functions that the same change grants. `hosts` are those that its tools may call
    afterwards.
    """

    def __init__(self, basis: Basis, granting: Collection[str], hosts: Sequence[str]) -> None:
        self._basis, self._granting, self._hosts = basis, granting, hosts
        self._uris = {row.uri: row.id for row in basis.rows.values() if row.uri}
        self._checked: tuple[str, Ready] | None = None
        """The fingerprint of what was checked last: mostly it is also what is published."""

    def prepare(self, desired: DesiredPrimitive) -> PreparedChange | None:
        """Return the change that makes a primitive as desired; None if it is so already.

        Blocks while kinds inspect what changes (`validation.inspect`). Raises InvalidPrimitiveError
        with all problems by field; those of the state are at `state`.
        """
        fields = validation.normalized(desired.fields)
        working = fields if desired.draft is None else validation.normalized(desired.draft)
        old = self._basis.rows.get((fields.primitive_type.value, fields.name))
        was = PrimitiveState.DRAFT if old is None else PrimitiveState(old.state)
        if was is not PrimitiveState.DRAFT and desired.state is PrimitiveState.DRAFT:
            raise InvalidPrimitiveError({"state": [_NO_DRAFT]})
        publishes = desired.state is not PrimitiveState.DRAFT and not _serves(old, fields)
        row, entries = self._edited(old, working)
        ready = self._check(fields, old) if publishes else None
        missing = self._missing_secrets(fields) if publishes else ()
        version = None
        if missing:
            verbs: Sequence[PrimitiveVerb] = ()
        elif ready is not None:
            number = self._basis.numbers.get(row.id, 0) + 1
            version = new_version(row, number, fields, ready, working_digest(ready, fields))
            restored = (PrimitiveVerb.RESTORE,) if was is PrimitiveState.ARCHIVED else ()
            after = _PATHS.get((PrimitiveState.PUBLISHED, desired.state), ())
            verbs = (*restored, PrimitiveVerb.PUBLISH, *after)
        else:
            verbs = _PATHS.get((was, desired.state), ())
        if verbs and desired.state is PrimitiveState.PUBLISHED:
            self._check_servable(fields)
        _move(row, version, verbs, entries)
        return PreparedChange(row, version, entries, missing) if entries else None

    def archive(self, row: Primitive) -> PreparedChange | None:
        """Return the change that archives a primitive.

        None for one that is archived already, and for a draft, which cannot be.
        """
        if row.live_id is None:
            return None
        changed_row, entries = copy(row), list[PreparedEntry]()
        verbs = _PATHS.get((PrimitiveState(row.state), PrimitiveState.ARCHIVED), ())
        _move(changed_row, None, verbs, entries)
        return PreparedChange(changed_row, None, entries) if entries else None

    def _edited(
        self, old: Primitive | None, working: PrimitiveFields
    ) -> tuple[Primitive, list[PreparedEntry]]:
        """Return the row with this working copy, and the entry of the edit, if it is one."""
        if old is None:
            row, entry = (
                Primitive(tenant=self._basis.tenant),
                PreparedEntry("created", {"kind": working.kind}),
            )
        else:
            names = changed(working_copy(old), working)
            if not names:
                return copy(old), []
            if "kind" in names:
                message = _OTHER_KIND.format(working.primitive_type)
                raise InvalidPrimitiveError({"kind": [message]})
            row, entry = copy(old), PreparedEntry("updated", {"changed": names})
        uri = self._check(working, old).compiled.uri or None
        if old is not None and old.live_id and old.uri != uri:
            raise InvalidPrimitiveError({validation.uri_field(working): [_OTHER_URI]})
        if uri and self._uris.setdefault(uri, row.id) != row.id:
            message = validation.in_use_message("uri", working.primitive_type)
            raise InvalidPrimitiveError({validation.uri_field(working): [message]})
        for name in FIELD_NAMES:
            setattr(row, name, getattr(working, name))
        row.config_order, row.uri = order_of(working.config), uri
        return row, [entry]

    def _check(self, fields: PrimitiveFields, old: Primitive | None) -> Ready:
        key = fingerprint(fields)
        if self._checked is None or self._checked[0] != key:
            tenant_id, primitive_id = self._basis.tenant.pk, None if old is None else old.id
            inspected = validation.inspect(tenant_id, fields)
            ready = validation.check(tenant_id, inspected, primitive_id, self._granting)
            self._checked = key, ready
        return self._checked[1]

    def _missing_secrets(self, fields: PrimitiveFields) -> Sequence[str]:
        stored = {row.name for row in self._basis.secrets}
        return sorted(set(kinds.secrets_of(fields.kind, fields.config)) - stored)

    def _check_servable(self, fields: PrimitiveFields) -> None:
        """Refuse to serve what the tenant may not send, or a function that it may not use."""
        function = kinds.function_of(fields.kind, fields.config)
        if function not in self._granting and (
            refused := validation.check_grant(self._basis.tenant.pk, function)
        ):
            raise InvalidPrimitiveError({f"config.{kinds.GRANTED_BY_STAFF[fields.kind]}": refused})
        problems = outgoing.problems_with(
            fields.kind, fields.config, self._basis.secrets, self._hosts
        )
        if problems:
            raise InvalidPrimitiveError(problems)


@transaction.atomic
def store(basis: Basis, changes: Iterable[PreparedChange], actor: Actor) -> None:
    """Store prepared changes, all or none.

    Raises StaleError if the tenant is no longer what they were prepared on, PermissionDenied, and
    UnknownTenantError if the tenant is closed.
    """
    tenant = lock_open_tenant(basis.tenant.pk, actor, Permission.EDIT_TOOLS)
    current = Primitive.objects.filter(tenant=tenant).values_list(*RowKey._fields)
    secrets = locked_secrets(tenant.pk, {row.name for row in basis.secrets})
    is_same = (
        frozenset(map(RowKey._make, current)) == basis.keys
        and frozenset((row.name, row.rules) for row in secrets) == basis.secret_rules
        and basis.grants <= granted_references(tenant.pk)
    )
    if not is_same:
        raise StaleError(tenant.slug)
    stored, now = list(changes), timezone.now()
    rows = [change.row for change in stored]
    for row in rows:
        row.updated_at = now
    existing = {row.id for row in basis.rows.values()}
    Primitive.objects.bulk_create([row for row in rows if row.id not in existing], MAX_AT_ONCE)
    Primitive.objects.bulk_create(
        [row for row in rows if row.id in existing],
        MAX_AT_ONCE,
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=_CHANGING,
    )
    versions = [change.version for change in stored if change.version is not None]
    for version in versions:
        version.published_by = (actor.label or actor.kind)[:200]
    PrimitiveVersion.objects.bulk_create(versions, MAX_AT_ONCE)
    _record_all(tenant.pk, stored, actor)


def _record_all(tenant_id: UUID, changes: Sequence[PreparedChange], actor: Actor) -> None:
    facts_by_action: defaultdict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    ids_by_kind: defaultdict[str, list[tuple[UUID | None, str]]] = defaultdict(list)
    for row, _, entries, _ in changes:
        for verb, facts in entries:
            facts_by_action[f"{row.primitive_type}.{verb}"][row.name] = facts
        ids_by_kind[news_of(PrimitiveType(row.primitive_type))].append((tenant_id, str(row.id)))
    for action, facts_by_name in facts_by_action.items():
        audit.record_each(action, facts_by_name, actor=actor, tenant=tenant_id)
    for kind, about in ids_by_kind.items():
        announce_all(kind, about)


def served_fields(row: Primitive) -> PrimitiveFields:
    """Return the fields of the version that was published last; of a draft, the working copy."""
    working = working_copy(row)
    if row.live is None:
        return working
    published = row.live.snapshot
    config = in_order(published["config"], row.live.config_order)
    return replace(working, **{**published, "config": config})


def _serves(row: Primitive | None, fields: PrimitiveFields) -> bool:
    """Whether the version that was published last has these fields."""
    return row is not None and row.live is not None and not changed(served_fields(row), fields)


def _move(
    row: Primitive,
    version: PrimitiveVersion | None,
    verbs: Iterable[PrimitiveVerb],
    entries: list[PreparedEntry],
) -> None:
    """Change state and version of a row, and add an entry for each step."""
    for verb in verbs:
        following_state = following(PrimitiveState(row.state), verb)
        assert following_state is not None
        row.state = following_state
        facts: dict[str, Any] = {}
        if verb is PrimitiveVerb.PUBLISH and version is not None:
            row.live = version
            facts = {"number": version.number, "digest": version.digest}
        entries.append(PreparedEntry(ENTRY_VERBS[verb], {**facts, "version": str(row.live)}))
