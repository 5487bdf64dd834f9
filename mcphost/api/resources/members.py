"""Members of a tenant: their roles, and the scopes of single tools that they may take."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, Self

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import Fields, ListPage, PagedQuery, Representation
from mcphost.tenants import services
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Permission, Role

MAX_ID: Final = 2**63 - 1
"""What SQLite can compare an id with."""
EXAMPLE: Final[dict[str, Any]] = {"role": "operator", "scopes": []}


class MemberFields(Fields):
    """The role of a member. `scopes` are those of single tools, sorted."""

    role: Literal["owner", "operator", "auditor", "member"]
    scopes: list[str] = Field([], description="Scopes of single tools, such as mcp:refund.")


class MemberRepresentation(Representation):
    """A member. `id` is the user's."""

    id: int
    username: str
    role: str
    scopes: Sequence[str]
    added_by: str
    created_at: datetime
    accepted_at: datetime | None
    active: bool

    @classmethod
    def of(cls, row: Membership) -> Self:
        return cls(
            id=row.user_id,
            username=row.user.get_username(),
            role=row.role,
            scopes=row.scopes,
            added_by=row.added_by,
            created_at=row.created_at,
            accepted_at=row.accepted_at,
            active=row.user.is_active,
        )


class MemberQuery(PagedQuery):
    """The filter of the list of members."""

    username: str = Field("", max_length=150, description="Only the member of this name.")


class MemberListPage(ListPage[MemberRepresentation]):
    """The members of a tenant by user name."""


def _rows(call: ApiCall) -> QuerySet[Membership]:
    rows = Membership.objects.filter(tenant=call.tenant).select_related("user")
    return rows.order_by("user__username")


def _row(call: ApiCall, user_id: int) -> Membership:
    row = _rows(call).filter(user=user_id).first() if user_id <= MAX_ID else None
    if row is None:
        raise not_found()
    return row


def _read(call: ApiCall, user_id: int) -> MemberRepresentation:
    return MemberRepresentation.of(_row(call, user_id))


def _user(call: ApiCall, user_id: int) -> User:
    return _row(call, user_id).user


class MemberCollection(Endpoint):
    """`/tenants/{slug}/members`."""

    @operation(
        ApiOperation("List members", Permission.MANAGE_MEMBERS, MemberListPage, query=MemberQuery)
    )
    def get(self, call: ApiCall, query: MemberQuery) -> HttpResponse:
        rows = _rows(call)
        if query.username:
            rows = rows.filter(user__username=query.username)
        if (after := call.after()) is not None:
            rows = rows.filter(user__username__gt=after[0])
        items = [MemberRepresentation.of(row) for row in rows[: call.limit + 1]]
        return call.show_page(MemberListPage, items, lambda item: [item.username])


class MemberObject(Endpoint):
    """`/tenants/{slug}/members/{user_id}`."""

    @operation(ApiOperation("Read a member", Permission.MANAGE_MEMBERS, MemberRepresentation))
    def get(self, call: ApiCall, user_id: int) -> HttpResponse:
        return call.show(_read(call, user_id))

    @operation(
        ApiOperation(
            "Replace the role and scopes of a member",
            Permission.MANAGE_MEMBERS,
            MemberRepresentation,
            body=MemberFields,
            conditional=True,
            example=EXAMPLE,
        )
    )
    def put(self, call: ApiCall, body: MemberFields, user_id: int) -> HttpResponse:
        return _change(call, body, user_id)

    @operation(
        ApiOperation(
            "Change the role or the scopes of a member",
            Permission.MANAGE_MEMBERS,
            MemberRepresentation,
            body=MemberFields,
            conditional=True,
            merges=_read,
            example={"role": "auditor"},
        )
    )
    def patch(self, call: ApiCall, body: MemberFields, user_id: int) -> HttpResponse:
        return _change(call, body, user_id)

    @operation(ApiOperation("Remove a member", Permission.MANAGE_MEMBERS, None, conditional=True))
    def delete(self, call: ApiCall, user_id: int) -> HttpResponse:
        return call.remove(
            lambda: _read(call, user_id),
            lambda: services.remove_member(call.tenant.pk, _user(call, user_id), actor=call.actor),
        )


def _change(call: ApiCall, body: MemberFields, user_id: int) -> HttpResponse:
    def change() -> MemberRepresentation:
        user = _user(call, user_id)
        services.set_member(call.tenant.pk, user, Role(body.role), actor=call.actor)
        services.grant_scopes(call.tenant.pk, user, body.scopes, actor=call.actor)
        return _read(call, user_id)

    return call.change(lambda: _read(call, user_id), change)
