"""Tenants: their settings."""

from dataclasses import asdict
from datetime import datetime
from typing import Final, Self
from uuid import UUID

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.representations import Fields, ListPage, NoFields, PagedQuery, Representation
from mcphost.tenants import services
from mcphost.tenants.access import visible_tenants
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.tenants.selectors import TenantSnapshot, snapshot

EXAMPLE: Final = {
    "title": "Acme",
    "icon": "",
    "instructions": "Tools for the support team.",
    "allowed_origins": ["https://app.example.com"],
    "outgoing_hosts": ["api.example.com"],
    "public": False,
    "metadata_documents_only": False,
    "calls_per_minute": 600,
    "concurrent_calls": None,
}


class TenantSettings(Fields):
    """The settings of a tenant that its owners may write."""

    title: str = Field(min_length=1)
    icon: str = Field("", description="A data: URI of a small image, or empty.")
    instructions: str = Field("", description="What models read about this server.")
    allowed_origins: list[str] = Field([], description="Origins of web pages that may call it.")
    outgoing_hosts: list[str] = Field(
        [], description="The only hosts that its tools may call; none: all public ones."
    )
    public: bool = False
    metadata_documents_only: bool = False
    calls_per_minute: int | None = None
    concurrent_calls: int | None = None

    def tenant_fields(self) -> TenantFields:
        """Return the settings as the service takes them."""
        values = self.model_dump(include=set(TenantSettings.model_fields))
        return TenantFields(
            **{
                **values,
                "allowed_origins": tuple(self.allowed_origins),
                "outgoing_hosts": tuple(self.outgoing_hosts),
            }
        )


class TenantCreation(TenantSettings):
    """A tenant to create. Its slug is in the URL of its MCP endpoint, and never changes."""

    slug: str


class TenantRepresentation(Representation):
    """A tenant. A closed one can be read, and not changed."""

    id: UUID
    slug: str
    title: str
    icon: str
    instructions: str
    allowed_origins: list[str]
    outgoing_hosts: list[str]
    public: bool
    metadata_documents_only: bool
    calls_per_minute: int | None
    concurrent_calls: int | None
    created_at: datetime
    closed_at: datetime | None

    @classmethod
    def of(cls, tenant: TenantSnapshot) -> Self:
        return cls.model_validate(asdict(tenant))


class TenantQuery(PagedQuery):
    """The filter of the list of tenants."""

    slug: str = Field("", description="Only the tenant with this slug.")


class TenantListPage(ListPage[TenantRepresentation]):
    """Tenants by slug."""


def _read(call: ApiCall) -> TenantRepresentation:
    return TenantRepresentation.of(snapshot(Tenant.objects.get(pk=call.tenant.pk)))


class TenantCollection(Endpoint):
    """`/tenants`."""

    @operation(
        ApiOperation("List the tenants that you may see", None, TenantListPage, query=TenantQuery)
    )
    def get(self, call: ApiCall, query: TenantQuery) -> HttpResponse:
        tenants = visible_tenants(call.credential.user)
        if call.credential.tenant is not None:
            tenants = tenants.filter(pk=call.credential.tenant)
        if query.slug:
            tenants = tenants.filter(slug=query.slug)
        if (after := call.after()) is not None:
            tenants = tenants.filter(slug__gt=after[0])
        rows = map(snapshot, tenants.order_by("slug")[: call.limit + 1])
        items = [TenantRepresentation.of(row) for row in rows]
        return call.show_page(TenantListPage, items, lambda item: [item.slug])

    @operation(
        ApiOperation(
            "Create a tenant, as platform staff",
            Permission.MANAGE_TENANT,
            TenantRepresentation,
            body=TenantCreation,
            creates=True,
            example={"slug": "acme-two", **EXAMPLE},
        )
    )
    def post(self, call: ApiCall, body: TenantCreation) -> HttpResponse:
        return call.create(
            lambda: TenantRepresentation.of(
                services.create_tenant(body.slug, body.tenant_fields(), actor=call.actor)
            ),
            lambda tenant: tenant.slug,
        )


class TenantObject(Endpoint):
    """`/tenants/{slug}`."""

    @operation(ApiOperation("Read a tenant", Permission.VIEW_TOOLS, TenantRepresentation))
    def get(self, call: ApiCall) -> HttpResponse:
        return call.show(_read(call))

    @operation(
        ApiOperation(
            "Replace the settings of a tenant",
            Permission.MANAGE_TENANT,
            TenantRepresentation,
            body=TenantSettings,
            conditional=True,
            example=EXAMPLE,
        )
    )
    def put(self, call: ApiCall, body: TenantSettings) -> HttpResponse:
        return _update(call, body)

    @operation(
        ApiOperation(
            "Change some settings of a tenant",
            Permission.MANAGE_TENANT,
            TenantRepresentation,
            body=TenantSettings,
            conditional=True,
            merges=_read,
            example={"title": "Acme Inc."},
        )
    )
    def patch(self, call: ApiCall, body: TenantSettings) -> HttpResponse:
        return _update(call, body)


class TenantClosing(Endpoint):
    """`/tenants/{slug}/close`."""

    @operation(
        ApiOperation(
            "Close a tenant for good",
            Permission.MANAGE_TENANT,
            TenantRepresentation,
            body=NoFields,
            conditional=True,
        )
    )
    def post(self, call: ApiCall) -> HttpResponse:
        return call.change(
            lambda: _read(call),
            lambda: TenantRepresentation.of(
                services.close_tenant(call.tenant.pk, actor=call.actor)
            ),
        )


def _update(call: ApiCall, body: TenantSettings) -> HttpResponse:
    return call.change(
        lambda: _read(call),
        lambda: TenantRepresentation.of(
            services.update_tenant(call.tenant.pk, body.tenant_fields(), actor=call.actor)
        ),
    )
