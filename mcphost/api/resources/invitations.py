"""Invitations: a role that is offered to a user name. The link is in the response to the creation, and nowhere else."""

from datetime import datetime
from typing import Final, Literal, Self
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import FieldFault, ProblemError, ProblemType, not_found
from mcphost.api.representations import Fields, ListPage, NoFields, PagedQuery, Representation
from mcphost.api.resources.calls import cursor_id
from mcphost.identity.oauth.addresses import public_url
from mcphost.tenants import invitations
from mcphost.tenants.invitations import DAYS, MAX_DAYS, InvitationListing
from mcphost.tenants.roles import Permission, Role

SHOWN_ONCE: Final = frozenset({"link"})
_ENDED: Final = "The invitation has ended already."


class InvitationFields(Fields):
    """Whom to invite. `sets_up`: the person has no account yet, and the link creates it."""

    username: str = Field(description="Exactly as the person signs in.")
    role: Literal["owner", "operator", "auditor", "member"]
    days: int = Field(DAYS, ge=1, le=MAX_DAYS, description="How long the link works.")
    sets_up: bool = False


class InvitationRepresentation(Representation):
    """An invitation without its link. `state` is open, expired, void (its inviter may not invite any more), accepted,
    declined or withdrawn."""

    id: UUID
    username: str
    role: str
    sets_up: bool
    invited_by: str
    created_at: datetime
    expires_at: datetime
    state: str

    @classmethod
    def of(cls, row: InvitationListing) -> Self:
        return cls(**{name: getattr(row, name) for name in InvitationRepresentation.model_fields})


class IssuedInvitationRepresentation(InvitationRepresentation):
    """An invitation that was just made. `link` is what the person opens; null where the response is repeated."""

    link: str | None = Field(repr=False)

    def etag(self) -> str:
        return InvitationRepresentation(**self.model_dump(exclude=set(SHOWN_ONCE))).etag()


class InvitationQuery(PagedQuery):
    """The parameters of the list of invitations."""


class InvitationListPage(ListPage[InvitationRepresentation]):
    """The invitations of a tenant, the newest first, including those that have ended."""


class InvitationCollection(Endpoint):
    """`/tenants/{slug}/invitations`."""

    @operation(
        ApiOperation(
            "List invitations",
            Permission.MANAGE_MEMBERS,
            InvitationListPage,
            query=InvitationQuery,
        )
    )
    def get(self, call: ApiCall, query: InvitationQuery) -> HttpResponse:
        rows = invitations.listing(
            call.tenant.pk, call.now, after=cursor_id(call), limit=call.limit + 1
        )
        items = [InvitationRepresentation.of(row) for row in rows]
        return call.show_page(InvitationListPage, items, lambda item: [str(item.id)])

    @operation(
        ApiOperation(
            "Invite a user name to a role, in place of an open invitation for it",
            Permission.MANAGE_MEMBERS,
            IssuedInvitationRepresentation,
            body=InvitationFields,
            creates=True,
            shown_once=SHOWN_ONCE,
            example={"username": "mia", "role": "operator", "days": 7, "sets_up": False},
        )
    )
    def post(self, call: ApiCall, body: InvitationFields) -> HttpResponse:
        def invite() -> IssuedInvitationRepresentation:
            issued = invitations.invite(
                call.tenant.pk,
                body.username,
                Role(body.role),
                actor=call.actor,
                days=body.days,
                sets_up=body.sets_up,
            )
            address = reverse("admin:invitation", args=[issued.link])
            link = public_url(call.request, address)
            return IssuedInvitationRepresentation(**_read(call, issued.id).model_dump(), link=link)

        return call.create(invite, lambda invitation: str(invitation.id))


class InvitationObject(Endpoint):
    """`/tenants/{slug}/invitations/{invitation_id}`."""

    @operation(
        ApiOperation("Read an invitation", Permission.MANAGE_MEMBERS, InvitationRepresentation)
    )
    def get(self, call: ApiCall, invitation_id: UUID) -> HttpResponse:
        return call.show(_read(call, invitation_id))


class InvitationWithdrawal(Endpoint):
    """`/tenants/{slug}/invitations/{invitation_id}/withdraw`."""

    @operation(
        ApiOperation(
            "Withdraw an invitation: its link stops working",
            Permission.MANAGE_MEMBERS,
            InvitationRepresentation,
            body=NoFields,
            conditional=True,
        )
    )
    def post(self, call: ApiCall, invitation_id: UUID) -> HttpResponse:
        def withdraw() -> InvitationRepresentation:
            if not invitations.withdraw(call.tenant.pk, invitation_id, actor=call.actor):
                fault = FieldFault("/state", "state", _ENDED)
                raise ProblemError(ProblemType.CONFLICT, _ENDED, [fault])
            return _read(call, invitation_id)

        return call.change(lambda: _read(call, invitation_id), withdraw)


def _read(call: ApiCall, invitation_id: UUID) -> InvitationRepresentation:
    row = invitations.invitation(call.tenant.pk, invitation_id, call.now)
    if row is None:
        raise not_found()
    return InvitationRepresentation.of(row)
