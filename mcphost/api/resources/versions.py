"""Published versions of tools, prompts, resources and templates."""

from datetime import datetime
from typing import Any, Final, Self
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import Fields, ListPage, PagedQuery, Representation
from mcphost.api.resources.primitives import PrimitiveRepresentation, read_primitive, row_of
from mcphost.catalogue import selectors, services
from mcphost.catalogue.rows import VersionRow
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.execution import trials
from mcphost.tenants.roles import Permission

VERSION_EXAMPLE: Final = "3f0a8a52-6f5c-4c57-9f0e-1d2f0a7c9b11"


class CodeRepresentation(Representation):
    """What the code declared when the version was published."""

    title: str
    description: str
    input_schema: dict[str, Any] | None = Field(alias="inputSchema")
    output_schema: dict[str, Any] | None = Field(alias="outputSchema")
    annotations: dict[str, Any]
    author_version: str | None


class VersionRepresentation(Representation):
    """A published version, which never changes. `live`: it is the one that was published last, or
    rolled back to."""

    id: UUID
    number: int
    label: str
    digest: str
    live: bool
    kind: str
    config: dict[str, Any]
    title: str
    description: str
    icons: list[dict[str, Any]]
    scopes: list[str]
    time_limit_seconds: float | None
    answer_within_seconds: float | None
    code: CodeRepresentation
    note: str
    published_by: str
    published_at: datetime

    @classmethod
    def of(cls, row: VersionRow) -> Self:
        return cls.model_validate(
            {
                **row.snapshot,
                "id": row.id,
                "number": row.number,
                "label": row.label,
                "digest": row.digest,
                "live": row.live,
                "code": dict(row.code),
                "note": row.note,
                "published_by": row.published_by,
                "published_at": row.published_at,
            }
        )


class VersionQuery(PagedQuery):
    """The parameters of a list of versions."""


class VersionListPage(ListPage[VersionRepresentation]):
    """The versions of a primitive, the newest first."""


class RollBackFields(Fields):
    """The version to serve again, and why."""

    version_id: UUID = Field(strict=False, description="The id of the version.")
    note: str = ""


class VersionCollection(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}/versions`, and of the other types."""

    @operation(
        ApiOperation(
            "List the versions of a {type}",
            Permission.VIEW_TOOLS,
            VersionListPage,
            query=VersionQuery,
        )
    )
    def get(
        self,
        call: ApiCall,
        query: VersionQuery,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
    ) -> HttpResponse:
        row = row_of(call, primitive_type, primitive_id)
        after = call.after()
        before = None if after is None else int(after[0])
        rows = selectors.version_page(row.id, before=before, limit=call.limit + 1)
        items = [VersionRepresentation.of(version) for version in rows]
        return call.show_page(VersionListPage, items, lambda version: [version.number])


class VersionObject(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}/versions/{version_id}`, and of the other types."""

    @operation(
        ApiOperation("Read a version of a {type}", Permission.VIEW_TOOLS, VersionRepresentation)
    )
    def get(
        self,
        call: ApiCall,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
        version_id: UUID,
    ) -> HttpResponse:
        row = row_of(call, primitive_type, primitive_id)
        version = selectors.version(row.id, version_id)
        if version is None:
            raise not_found()
        return call.show(VersionRepresentation.of(version))


class RollBack(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}/roll-back`, and of the other types."""

    @operation(
        ApiOperation(
            "Serve an earlier version of a {type} again",
            Permission.EDIT_TOOLS,
            PrimitiveRepresentation,
            body=RollBackFields,
            conditional=True,
            example={"version_id": VERSION_EXAMPLE, "note": "It was better."},
        )
    )
    def post(
        self,
        call: ApiCall,
        body: RollBackFields,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
    ) -> HttpResponse:
        def roll_back() -> PrimitiveRepresentation:
            row = services.roll_back(primitive_id, body.version_id, call.actor, note=body.note)
            trials.end_of(row, trials.ROLLED_BACK, call.actor)
            return PrimitiveRepresentation.of(row)

        return call.change(lambda: read_primitive(call, primitive_type, primitive_id), roll_back)
