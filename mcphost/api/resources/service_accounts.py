"""Service accounts of a tenant: owners of tokens for programs."""

from datetime import datetime
from typing import Self
from uuid import UUID

from django.http import HttpResponse

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import Fields, ListPage, NoFields, PagedQuery, Representation
from mcphost.identity import service_accounts as services
from mcphost.identity.service_accounts import AccountListing
from mcphost.tenants.roles import Permission


class ServiceAccountFields(Fields):
    """A service account to create. Its name is never used again in this tenant."""

    name: str
    description: str = ""


class ServiceAccountRepresentation(Representation):
    """A service account. A disabled one's tokens do not work."""

    id: UUID
    name: str
    description: str
    created_by: str
    created_at: datetime
    disabled_at: datetime | None

    @classmethod
    def of(cls, row: AccountListing) -> Self:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class ServiceAccountQuery(PagedQuery):
    """The parameters of the list of service accounts."""


class ServiceAccountListPage(ListPage[ServiceAccountRepresentation]):
    """The service accounts of a tenant by name, without those that were removed."""


def _read(call: ApiCall, account_id: UUID) -> ServiceAccountRepresentation:
    for row in services.accounts(call.tenant.pk):
        if row.id == account_id:
            return ServiceAccountRepresentation.of(row)
    raise not_found()


class ServiceAccountCollection(Endpoint):
    """`/tenants/{slug}/service_accounts`."""

    @operation(
        ApiOperation(
            "List service accounts",
            Permission.MANAGE_TOKENS,
            ServiceAccountListPage,
            query=ServiceAccountQuery,
        )
    )
    def get(self, call: ApiCall, query: ServiceAccountQuery) -> HttpResponse:
        after = call.after()
        rows = [
            ServiceAccountRepresentation.of(row)
            for row in services.accounts(call.tenant.pk)
            if after is None or row.name > str(after[0])
        ]
        shown = rows[: call.limit + 1]
        return call.show_page(ServiceAccountListPage, shown, lambda item: [item.name])

    @operation(
        ApiOperation(
            "Create a service account",
            Permission.MANAGE_TOKENS,
            ServiceAccountRepresentation,
            body=ServiceAccountFields,
            creates=True,
            example={"name": "ci", "description": "Runs the nightly checks."},
        )
    )
    def post(self, call: ApiCall, body: ServiceAccountFields) -> HttpResponse:
        return call.create(
            lambda: _read(
                call,
                services.create(call.tenant.pk, body.name, body.description, actor=call.actor),
            ),
            lambda account: str(account.id),
        )


class ServiceAccountObject(Endpoint):
    """`/tenants/{slug}/service_accounts/{account_id}`."""

    @operation(
        ApiOperation(
            "Read a service account", Permission.MANAGE_TOKENS, ServiceAccountRepresentation
        )
    )
    def get(self, call: ApiCall, account_id: UUID) -> HttpResponse:
        return call.show(_read(call, account_id))

    @operation(
        ApiOperation(
            "Remove a service account with its tokens",
            Permission.MANAGE_TOKENS,
            None,
            conditional=True,
        )
    )
    def delete(self, call: ApiCall, account_id: UUID) -> HttpResponse:
        return call.remove(
            lambda: _read(call, account_id),
            lambda: services.remove(call.tenant.pk, account_id, actor=call.actor),
        )


class ServiceAccountDisabling(Endpoint):
    """`/tenants/{slug}/service_accounts/{account_id}/disable`."""

    @operation(
        ApiOperation(
            "Disable a service account: its tokens stop working",
            Permission.MANAGE_TOKENS,
            ServiceAccountRepresentation,
            body=NoFields,
            conditional=True,
        )
    )
    def post(self, call: ApiCall, account_id: UUID) -> HttpResponse:
        def disable() -> ServiceAccountRepresentation:
            services.disable(call.tenant.pk, account_id, actor=call.actor)
            return _read(call, account_id)

        return call.change(lambda: _read(call, account_id), disable)


class ServiceAccountEnabling(Endpoint):
    """`/tenants/{slug}/service_accounts/{account_id}/enable`."""

    @operation(
        ApiOperation(
            "Enable a service account",
            Permission.MANAGE_TOKENS,
            ServiceAccountRepresentation,
            body=NoFields,
            conditional=True,
        )
    )
    def post(self, call: ApiCall, account_id: UUID) -> HttpResponse:
        def enable() -> ServiceAccountRepresentation:
            services.enable(call.tenant.pk, account_id, actor=call.actor)
            return _read(call, account_id)

        return call.change(lambda: _read(call, account_id), enable)
