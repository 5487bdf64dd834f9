"""Python functions of the platform's code, and which of them a tenant may use."""

from typing import Final, Self

from django.http import HttpResponse

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import Fields, ListPage, PagedQuery, Representation
from mcphost.catalogue import selectors, services
from mcphost.catalogue.rows import FunctionRow
from mcphost.tenants.access import allowed
from mcphost.tenants.roles import Permission

EXAMPLE: Final = {"granted": True}


class FunctionFields(Fields):
    """Whether the tenant may use the function."""

    granted: bool


class FunctionRepresentation(Representation):
    """A function. `id` is its reference, `in_code` whether the code still has it."""

    id: str
    type: str
    label: str
    granted: bool
    in_code: bool

    @classmethod
    def of(cls, row: FunctionRow) -> Self:
        return cls(
            id=row.reference,
            type=row.primitive_type.value,
            label=row.label,
            granted=row.granted,
            in_code=row.in_code,
        )


class FunctionQuery(PagedQuery):
    """The parameters of the list of functions."""


class FunctionListPage(ListPage[FunctionRepresentation]):
    """Functions by reference: those that are granted; for platform staff, also those that are not."""


def _visible(call: ApiCall) -> list[FunctionRow]:
    """Return what the caller may see: a tenant does not learn of functions that it may not use."""
    sees_all = allowed(call.credential.user, call.tenant, Permission.GRANT_FUNCTIONS)
    return [row for row in selectors.functions(call.tenant.pk) if sees_all or row.granted]


def _read(call: ApiCall, function: str) -> FunctionRepresentation:
    for row in _visible(call):
        if row.reference == function:
            return FunctionRepresentation.of(row)
    raise not_found()


class FunctionCollection(Endpoint):
    """`/tenants/{slug}/functions`."""

    @operation(
        ApiOperation("List functions", Permission.VIEW_TOOLS, FunctionListPage, query=FunctionQuery)
    )
    def get(self, call: ApiCall, query: FunctionQuery) -> HttpResponse:
        after = call.after()
        rows = [
            FunctionRepresentation.of(row)
            for row in _visible(call)
            if after is None or row.reference > str(after[0])
        ]
        return call.show_page(FunctionListPage, rows[: call.limit + 1], lambda item: [item.id])


class FunctionObject(Endpoint):
    """`/tenants/{slug}/functions/{function}`."""

    @operation(ApiOperation("Read a function", Permission.VIEW_TOOLS, FunctionRepresentation))
    def get(self, call: ApiCall, function: str) -> HttpResponse:
        return call.show(_read(call, function))

    @operation(
        ApiOperation(
            "Grant a function to the tenant, or revoke the grant",
            Permission.GRANT_FUNCTIONS,
            FunctionRepresentation,
            body=FunctionFields,
            conditional=True,
            example=EXAMPLE,
        )
    )
    def put(self, call: ApiCall, body: FunctionFields, function: str) -> HttpResponse:
        def change() -> FunctionRepresentation:
            if body.granted:
                services.grant_function(call.tenant.pk, function, call.actor)
            else:
                services.revoke_grant(call.tenant.pk, function, call.actor)
            return _read(call, function)

        return call.change(lambda: _read(call, function), change)
