"""Tools, prompts, resources and resource templates: their working copies and states."""

from collections.abc import Callable, Mapping
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
from mcphost.catalogue import selectors, services, validation
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.states import PrimitiveState, PrimitiveVerb
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.serving.execution import trials
from mcphost.tenants.roles import Permission

SERVICES: Final[Mapping[PrimitiveVerb, Callable[..., PrimitiveRow]]] = {
    PrimitiveVerb.DISABLE: services.disable,
    PrimitiveVerb.ENABLE: services.enable,
    PrimitiveVerb.ARCHIVE: services.archive,
    PrimitiveVerb.RESTORE: services.restore,
}


EXAMPLES: Final[Mapping[PrimitiveType, Mapping[str, Any]]] = {
    PrimitiveType.TOOL: {
        "name": "list_orders",
        "description": "Lists the orders of a day.",
        "kind": "http",
        "config": {"request": {"method": "GET", "url": "https://api.example.com/orders"}},
    },
    PrimitiveType.PROMPT: {
        "name": "greet",
        "description": "Greets the team.",
        "kind": "text",
        "config": {"messages": [{"content": {"type": "text", "text": "Greet the team."}}]},
    },
    PrimitiveType.RESOURCE: {
        "name": "house_rules",
        "kind": "text",
        "config": {"uri": "docs://house-rules", "text": "Be kind."},
    },
    PrimitiveType.TEMPLATE: {
        "name": "menu",
        "kind": "text",
        "config": {"uri": "docs://menus/{day}", "text": "Soup on {day}."},
    },
}


class PrimitiveSettings(Fields):
    """The working copy. Empty texts and null leave the value to the code. What is served changes when
    it is published."""

    name: str
    kind: str = Field(description="How it is made; fixed once it is created.")
    config: dict[str, Any] = Field(description="What its kind defines.")
    title: str = ""
    description: str = ""
    icons: list[dict[str, Any]] = []
    scopes: list[str] = Field([], description="Scopes that callers need besides the common ones.")
    time_limit_seconds: float | None = None
    answer_within_seconds: float | None = None
    target_seconds: float | None = None

    def primitive_fields(self, primitive_type: PrimitiveType) -> PrimitiveFields:
        """Return the working copy as the service takes it."""
        return PrimitiveFields(primitive_type=primitive_type, **self.model_dump())


class PrimitiveRepresentation(Representation):
    """A tool, prompt, resource or resource template.

    `version` labels the version that was published last, and is null for a draft; `edited` says that
    the working copy has changed since. `uri` is a resource's, `uriTemplate` a template's.
    """

    id: UUID
    type: PrimitiveType
    name: str
    kind: str
    config: dict[str, Any]
    title: str
    description: str
    icons: list[dict[str, Any]]
    scopes: list[str]
    time_limit_seconds: float | None
    answer_within_seconds: float | None
    target_seconds: float | None
    uri: str | None
    uri_template: str | None = Field(alias="uriTemplate")
    state: PrimitiveState
    version: str | None
    edited: bool
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: PrimitiveRow) -> Self:
        fields = row.fields
        return cls(
            id=row.id,
            type=row.primitive_type,
            name=fields.name,
            kind=fields.kind,
            config=dict(fields.config),
            title=fields.title,
            description=fields.description,
            icons=[dict(icon) for icon in fields.icons],
            scopes=list(fields.scopes),
            time_limit_seconds=fields.time_limit_seconds,
            answer_within_seconds=fields.answer_within_seconds,
            target_seconds=fields.target_seconds,
            uri=row.uri if row.primitive_type is PrimitiveType.RESOURCE else None,
            uri_template=row.uri if row.primitive_type is PrimitiveType.TEMPLATE else None,
            state=row.state,
            version=row.version or None,
            edited=row.edited,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class PrimitiveQuery(PagedQuery):
    """The filters of a list of primitives."""

    name: str = Field("", max_length=64, description="Only the one with this name.")
    state: PrimitiveState | None = Field(None, description="Only those in this state.")
    q: str = Field("", max_length=64, description="Only those with this in name, title or URI.")


class PrimitiveListPage(ListPage[PrimitiveRepresentation]):
    """Primitives of one type, by name, in every state."""


class PublicationFields(Fields):
    """Why a version is published."""

    note: str = ""


def row_of(call: ApiCall, primitive_type: PrimitiveType, primitive_id: UUID) -> PrimitiveRow:
    """Return a primitive of the call's tenant. Raises ProblemError (404)."""
    row = selectors.primitive(primitive_id)
    if row is None or (row.tenant_id, row.primitive_type) != (call.tenant.pk, primitive_type):
        raise not_found()
    return row


def read_primitive(
    call: ApiCall, primitive_type: PrimitiveType, primitive_id: UUID
) -> PrimitiveRepresentation:
    """Return a primitive of the call's tenant as the API shows it. Raises ProblemError (404)."""
    return PrimitiveRepresentation.of(row_of(call, primitive_type, primitive_id))


class PrimitiveCollection(Endpoint):
    """`/tenants/{slug}/tools`, and of the other types."""

    @operation(
        ApiOperation("List {types}", Permission.VIEW_TOOLS, PrimitiveListPage, query=PrimitiveQuery)
    )
    def get(
        self, call: ApiCall, query: PrimitiveQuery, primitive_type: PrimitiveType
    ) -> HttpResponse:
        after = call.after()
        rows = selectors.primitive_page(
            call.tenant.pk,
            primitive_type,
            selectors.PrimitiveFilter(query.name, query.state, query.q),
            after="" if after is None else str(after[0]),
            limit=call.limit + 1,
        )
        items = [PrimitiveRepresentation.of(row) for row in rows]
        return call.show_page(PrimitiveListPage, items, lambda item: [item.name])

    @operation(
        ApiOperation(
            "Create a {type} as a draft",
            Permission.EDIT_TOOLS,
            PrimitiveRepresentation,
            body=PrimitiveSettings,
            creates=True,
            examples=EXAMPLES,
        )
    )
    def post(
        self, call: ApiCall, body: PrimitiveSettings, primitive_type: PrimitiveType
    ) -> HttpResponse:
        tenant_id = call.tenant.pk
        inspected = validation.inspect(tenant_id, body.primitive_fields(primitive_type))
        return call.create(
            lambda: PrimitiveRepresentation.of(
                services.create_inspected(tenant_id, inspected, call.actor)
            ),
            lambda primitive: str(primitive.id),
        )


class PrimitiveObject(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}`, and of the other types."""

    @operation(ApiOperation("Read a {type}", Permission.VIEW_TOOLS, PrimitiveRepresentation))
    def get(self, call: ApiCall, primitive_type: PrimitiveType, primitive_id: UUID) -> HttpResponse:
        return call.show(read_primitive(call, primitive_type, primitive_id))

    @operation(
        ApiOperation(
            "Replace the working copy of a {type}",
            Permission.EDIT_TOOLS,
            PrimitiveRepresentation,
            body=PrimitiveSettings,
            conditional=True,
            examples=EXAMPLES,
        )
    )
    def put(
        self,
        call: ApiCall,
        body: PrimitiveSettings,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
    ) -> HttpResponse:
        return _update(call, body, primitive_type, primitive_id)

    @operation(
        ApiOperation(
            "Change some fields of the working copy of a {type}",
            Permission.EDIT_TOOLS,
            PrimitiveRepresentation,
            body=PrimitiveSettings,
            conditional=True,
            merges=read_primitive,
            example={"description": "Described in other words."},
        )
    )
    def patch(
        self,
        call: ApiCall,
        body: PrimitiveSettings,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
    ) -> HttpResponse:
        return _update(call, body, primitive_type, primitive_id)

    @operation(
        ApiOperation(
            "Delete a {type} that is a draft, or archived, with its versions",
            Permission.EDIT_TOOLS,
            None,
            conditional=True,
        )
    )
    def delete(
        self, call: ApiCall, primitive_type: PrimitiveType, primitive_id: UUID
    ) -> HttpResponse:
        row = row_of(call, primitive_type, primitive_id)

        def delete() -> None:
            services.delete(primitive_id, call.actor)
            trials.end_of(row, trials.DELETED, call.actor)

        return call.remove(lambda: read_primitive(call, primitive_type, primitive_id), delete)


class PrimitivePublication(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}/publish`, and of the other types."""

    @operation(
        ApiOperation(
            "Publish the working copy of a {type} as its next version",
            Permission.EDIT_TOOLS,
            PrimitiveRepresentation,
            body=PublicationFields,
            conditional=True,
            example={"note": "The new address of the service."},
        )
    )
    def post(
        self,
        call: ApiCall,
        body: PublicationFields,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
    ) -> HttpResponse:
        return call.change(
            lambda: read_primitive(call, primitive_type, primitive_id),
            lambda: PrimitiveRepresentation.of(
                services.publish(primitive_id, call.actor, note=body.note)
            ),
        )


class PrimitiveTransition(Endpoint):
    """`/tenants/{slug}/tools/{primitive_id}/disable` and other verbs, and of the other types."""

    @operation(
        ApiOperation(
            "{Verb} a {type}", Permission.EDIT_TOOLS, PrimitiveRepresentation, conditional=True
        )
    )
    def post(
        self,
        call: ApiCall,
        primitive_type: PrimitiveType,
        primitive_id: UUID,
        verb: PrimitiveVerb,
    ) -> HttpResponse:
        def change() -> PrimitiveRepresentation:
            row = SERVICES[verb](primitive_id, call.actor)
            if verb in trials.ENDED_BY:
                trials.end_of(row, trials.ENDED_BY[verb], call.actor)
            return PrimitiveRepresentation.of(row)

        return call.change(lambda: read_primitive(call, primitive_type, primitive_id), change)


def _update(
    call: ApiCall, body: PrimitiveSettings, primitive_type: PrimitiveType, primitive_id: UUID
) -> HttpResponse:
    row_of(call, primitive_type, primitive_id)
    fields = body.primitive_fields(primitive_type)
    inspected = validation.inspect(call.tenant.pk, fields)
    return call.change(
        lambda: read_primitive(call, primitive_type, primitive_id),
        lambda: PrimitiveRepresentation.of(
            services.update_inspected(primitive_id, inspected, call.actor)
        ),
    )
