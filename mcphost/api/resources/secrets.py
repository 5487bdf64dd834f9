"""Secrets of a tenant: their rules can be read, their values only written."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, Self
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.debug import sensitive_variables
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import Fields, ListPage, PagedQuery, Representation
from mcphost.tenants.roles import Permission
from mcphost.vault.secrets import services
from mcphost.vault.secrets.selectors import SecretRow, tenant_secret, tenant_secrets

SecretPlace = Literal["header", "query", "body"]
EXAMPLE: Final = {"hosts": ["api.example.com"], "places": ["header"]}


class SecretFields(Fields):
    """Where a secret may be sent. A `value` replaces the stored one; to add a host or a place, it must
    be sent, too."""

    hosts: list[str] = Field(description="The only hosts that the value is sent to, sorted.")
    places: list[SecretPlace] = Field(
        description="The parts of a request that may contain it, in order."
    )
    value: str | None = Field(None, repr=False, description="Never returned.")


class SecretCreation(SecretFields):
    """A secret to store. Its name never changes, because tools refer to it."""

    name: str
    value: str = Field(repr=False, description="Never returned.")


class SecretRepresentation(Representation):
    """A secret without its value. `version` counts its values."""

    id: UUID
    name: str
    hosts: Sequence[str]
    places: Sequence[str]
    version: int
    created_at: datetime
    created_by: str
    rotated_at: datetime | None
    rotated_by: str

    @classmethod
    def of(cls, row: SecretRow) -> Self:
        return cls(
            id=row.id,
            name=row.name,
            hosts=row.rules.hosts,
            places=row.rules.places,
            version=row.version,
            created_at=row.created_at,
            created_by=row.created_by,
            rotated_at=row.rotated_at,
            rotated_by=row.rotated_by,
        )


class SecretUseRepresentation(Representation):
    """When a secret was last sent: at most a minute old."""

    last_used_at: datetime | None


class SecretQuery(PagedQuery):
    """The filter of the list of secrets."""

    name: str = Field("", description="Only the secret of this name.")


class SecretListPage(ListPage[SecretRepresentation]):
    """The secrets of a tenant by name."""


def _row(call: ApiCall, secret_id: UUID) -> SecretRow:
    row = tenant_secret(call.tenant.pk, secret_id)
    if row is None:
        raise not_found()
    return row


def _read(call: ApiCall, secret_id: UUID) -> SecretRepresentation:
    return SecretRepresentation.of(_row(call, secret_id))


class SecretCollection(Endpoint):
    """`/tenants/{slug}/secrets`."""

    @operation(
        ApiOperation("List secrets", Permission.VIEW_TOOLS, SecretListPage, query=SecretQuery)
    )
    def get(self, call: ApiCall, query: SecretQuery) -> HttpResponse:
        after = call.after()
        rows = [
            row
            for row in sorted(tenant_secrets(call.tenant.pk), key=lambda row: row.name)
            if query.name in ("", row.name) and (after is None or row.name > str(after[0]))
        ]
        items = [SecretRepresentation.of(row) for row in rows[: call.limit + 1]]
        return call.show_page(SecretListPage, items, lambda item: [item.name])

    @sensitive_variables()
    @operation(
        ApiOperation(
            "Store a secret",
            Permission.MANAGE_SECRETS,
            SecretRepresentation,
            body=SecretCreation,
            creates=True,
            example={"name": "orders_key", "value": "s3cret-v4lue", **EXAMPLE},
        )
    )
    def post(self, call: ApiCall, body: SecretCreation) -> HttpResponse:
        def create() -> SecretRepresentation:
            secret = services.create_secret(
                call.tenant.pk,
                body.name,
                body.value,
                hosts=body.hosts,
                places=body.places,
                actor=call.actor,
            )
            return _read(call, secret)

        return call.create(create, lambda secret: str(secret.id))


class SecretObject(Endpoint):
    """`/tenants/{slug}/secrets/{secret_id}`."""

    @operation(ApiOperation("Read a secret", Permission.VIEW_TOOLS, SecretRepresentation))
    def get(self, call: ApiCall, secret_id: UUID) -> HttpResponse:
        return call.show(_read(call, secret_id))

    @operation(
        ApiOperation(
            "Replace the rules of a secret, and its value",
            Permission.MANAGE_SECRETS,
            SecretRepresentation,
            body=SecretFields,
            conditional=True,
            example=EXAMPLE,
        )
    )
    def put(self, call: ApiCall, body: SecretFields, secret_id: UUID) -> HttpResponse:
        return _change(call, body, secret_id)

    @operation(
        ApiOperation(
            "Change some rules of a secret, or its value",
            Permission.MANAGE_SECRETS,
            SecretRepresentation,
            body=SecretFields,
            conditional=True,
            merges=_read,
            example={"value": "an0ther-v4lue"},
        )
    )
    def patch(self, call: ApiCall, body: SecretFields, secret_id: UUID) -> HttpResponse:
        return _change(call, body, secret_id)

    @operation(ApiOperation("Delete a secret", Permission.MANAGE_SECRETS, None, conditional=True))
    def delete(self, call: ApiCall, secret_id: UUID) -> HttpResponse:
        return call.remove(
            lambda: _read(call, secret_id),
            lambda: services.delete_secret(call.tenant.pk, secret_id, actor=call.actor),
        )


class SecretUseObject(Endpoint):
    """`/tenants/{slug}/secrets/{secret_id}/use`: apart, because it changes with each use."""

    @operation(
        ApiOperation(
            "Read when a secret was last used", Permission.VIEW_TOOLS, SecretUseRepresentation
        )
    )
    def get(self, call: ApiCall, secret_id: UUID) -> HttpResponse:
        row = _row(call, secret_id)
        return call.show(SecretUseRepresentation(last_used_at=row.last_used_at))


def _change(call: ApiCall, body: SecretFields, secret_id: UUID) -> HttpResponse:
    def change() -> SecretRepresentation:
        services.change_secret(
            call.tenant.pk,
            secret_id,
            hosts=body.hosts,
            places=body.places,
            value=body.value,
            actor=call.actor,
        )
        return _read(call, secret_id)

    return call.change(lambda: _read(call, secret_id), change)
