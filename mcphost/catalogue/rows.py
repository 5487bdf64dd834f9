"""Frozen rows of the catalogue for the console, one query for many."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from mcphost.catalogue.fields import OVERRIDES, PrimitiveFields, fingerprint, working_copy
from mcphost.catalogue.models import Primitive, PrimitiveVersion
from mcphost.catalogue.ordering import in_order, property_order
from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.primitive_types import PrimitiveType


@dataclass(frozen=True, slots=True)
class PrimitiveRow:
    """A tool, prompt, resource or template as operators see it.

    `fields` is the working copy, `uri` the URI of a resource or template. `version` labels what was
    published last; it is empty for a draft that was never published. `edited` says that the working
    copy has changed since.
    """

    id: UUID
    tenant_id: UUID
    tenant_slug: str
    fields: PrimitiveFields
    uri: str
    state: PrimitiveState
    version: str
    edited: bool
    created_at: datetime
    updated_at: datetime

    @property
    def name(self) -> str:
        return self.fields.name

    @property
    def primitive_type(self) -> PrimitiveType:
        return self.fields.primitive_type

    @property
    def version_number(self) -> int:
        """The number of the version that was published last; 0 for none."""
        return int(self.version.partition("+")[0] or 0)

    @property
    def fingerprint(self) -> str:
        """The working copy's, by which a change says what it is based on."""
        return fingerprint(self.fields)


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One publication: the operator's part (`fields.snapshot`) and the code's (`fields.code`)."""

    id: UUID
    primitive_id: UUID
    number: int
    label: str
    digest: str
    live: bool
    snapshot: Mapping[str, Any]
    code: Mapping[str, Any]
    note: str
    published_by: str
    published_at: datetime


@dataclass(frozen=True, slots=True)
class FunctionUse:
    """A primitive whose working copy runs a function."""

    id: UUID
    primitive_type: PrimitiveType
    name: str


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A Python function for one tenant. `in_code` is false when the code no longer has it.
    `registered_as` are the tenant's primitives that run it, by name."""

    reference: str
    primitive_type: PrimitiveType
    label: str
    granted: bool
    in_code: bool
    registered_as: tuple[FunctionUse, ...] = ()


@dataclass(frozen=True, slots=True)
class SecretUse:
    """A primitive that uses a secret. `live`: its last published version does, not only the working
    copy; `published`: that version is being served."""

    id: UUID
    primitive_type: PrimitiveType
    name: str
    live: bool
    published: bool


def primitive_row(row: Primitive) -> PrimitiveRow:
    """Convert a primitive that was read with its tenant and its live version."""
    return PrimitiveRow(
        id=row.id,
        tenant_id=row.tenant_id,
        tenant_slug=row.tenant.slug,
        fields=working_copy(row),
        uri=row.uri or "",
        state=PrimitiveState(row.state),
        version=str(row.live) if row.live else "",
        edited=row.live is not None and _differs(row, row.live),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _differs(row: Primitive, live: PrimitiveVersion) -> bool:
    for name in ("config", *OVERRIDES):
        if getattr(row, name) != live.snapshot.get(name):
            return True
    published = in_order(live.snapshot["config"], live.config_order)
    return property_order(in_order(row.config, row.config_order)) != property_order(published)


def version_row(version: PrimitiveVersion) -> VersionRow:
    """Convert a version that was read with its primitive."""
    return VersionRow(
        id=version.id,
        primitive_id=version.primitive_id,
        number=version.number,
        label=str(version),
        digest=version.digest,
        live=version.primitive.live_id == version.id,
        snapshot={
            **version.snapshot,
            "config": in_order(version.snapshot["config"], version.config_order),
        },
        code=version.code,
        note=version.note,
        published_by=version.published_by,
        published_at=version.published_at,
    )
