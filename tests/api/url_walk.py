"""Every route of the API with its methods, and addresses with things of the cast's tenants."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.urls import URLPattern
from django.utils import timezone

from mcphost.api.endpoint import METHODS
from mcphost.api.operations import ApiOperation
from mcphost.api.urls import V1
from mcphost.audit.records import QUESTION_ASKED, Actor
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.kinds import functions
from mcphost.catalogue.selectors import versions
from mcphost.identity import service_accounts
from mcphost.identity.services import TokenRequest, issue_for_service
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants import invitations
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import LIST_TOOLS, Role
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.vault.secrets.services import create_secret
from mcphost.vault.services import ensure_ring
from tests.api.samples import SAMPLES
from tests.audit.recorded_calls import Story, keep
from tests.cast import ACTOR
from tests.tasks.rows import a_task


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one address."""

    name: str
    method: str
    pattern: URLPattern
    operation: ApiOperation

    def __str__(self) -> str:
        return f"{self.method} {self.name}"

    @property
    def is_of_tenant(self) -> bool:
        return "slug" in self.pattern.pattern.converters

    @property
    def types(self) -> str:
        """The collection of the object, for example `tools`."""
        return f"{self.pattern.default_args.get('primitive_type', self.name)}s"

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the parts of the route."""
        return tuple(self.pattern.pattern.converters)

    def id_of(self, name: str, ids: dict[str, Any]) -> Any:
        """Return the value of a part of the route; ids of primitives are by type."""
        primitive_type = self.pattern.default_args.get("primitive_type")
        value = ids.get(f"{primitive_type}.{name}", ids.get(name))
        assert value is not None, f"The walk needs a value for {name} of {self.name}"
        return value

    def path(self, ids: dict[str, Any]) -> str:
        """Return the address with these ids."""
        route = str(self.pattern.pattern)
        for name in self.ids:
            value = self.id_of(name, ids)
            route = re.sub(rf"<\w+:{name}>", str(value), route)
        return f"/api/v1/{route}"


def routes() -> Iterator[Route]:
    """Yield all operations."""
    for pattern in V1:
        view = vars(pattern.callback)["view_class"]
        for method in METHODS:
            handler = getattr(view, method, None)
            if handler is not None:
                yield Route(str(pattern.name), method.upper(), pattern, handler.operation)


ROUTES = tuple(routes())
RUNNING = ("tool_try", "tool_try_continue")
"""Operations that run a tool. What they record is committed by a thread, so they have tests of their own."""


def ids_of(tenant: TenantSnapshot) -> dict[str, Any]:
    """Create one of each type in a tenant; return their ids by the names of the routes' parts."""
    ids: dict[str, Any] = {"slug": tenant.slug}
    for sample in SAMPLES:
        primitive_type = sample.path.rpartition("/")[2].removesuffix("s")
        if primitive_type in set(PrimitiveType):
            identity, version = _published(
                tenant.id, PrimitiveType(primitive_type), sample.creation
            )
            ids[f"{primitive_type}.primitive_id"] = identity
            ids[f"{primitive_type}.version_id"] = version
    return ids | _others(tenant)


def _others(tenant: TenantSnapshot) -> dict[str, Any]:
    """Create one of each other resource of a tenant; its key and function are there."""
    story = Story.of(tenant.id, "canary-tool", at=timezone.now() - timedelta(minutes=5))
    keep(story.play("start; ask q"))
    member = Membership.objects.filter(tenant=tenant.id).order_by("role")[0]
    request = TokenRequest("canary-token", [LIST_TOOLS])
    account = service_accounts.create(tenant.id, "canary-account", actor=ACTOR)
    function = functions()[0][0]
    services.grant_function(tenant.id, function, ACTOR)
    places = {"hosts": ["api.example.com"], "places": ["header"]}
    secret = create_secret(tenant.id, "canary_secret", "c4nary-v4lue", actor=ACTOR, **places)
    return {
        "secret_id": secret,
        "token_id": issue_for_service(tenant.id, account, request, actor=ACTOR).id,
        "account_id": account,
        "user_id": member.user.pk,
        "function": function,
        "call_id": story.call.id,
        "task_call": _task(tenant.id),
        "invitation_id": _invitation(tenant),
        "input_request_id": next(row.id for row in story.made if row.action == QUESTION_ASKED),
        "entry_id": story.made[0].id,
        "key_id": ensure_ring(),
    }


def _task(tenant: UUID) -> UUID:
    """Return the call of a task that works."""
    story = Story.of(tenant, "canary-task", at=timezone.now() - timedelta(minutes=4))
    keep(story.become_task())
    return a_task(tenant, story.call.id, tool="canary-task").call


def _invitation(tenant: TenantSnapshot) -> UUID:
    owner = Membership.objects.filter(tenant=tenant.id, role=Role.OWNER)[0].user
    inviter = Actor.person(owner.pk, owner.get_username())
    return invitations.invite(tenant.id, "canary-person", Role.MEMBER, actor=inviter).id


def _published(tenant: UUID, primitive_type: PrimitiveType, creation: Any) -> tuple[UUID, UUID]:
    fields = PrimitiveFields(
        primitive_type=primitive_type,
        **{**creation, "name": f"canary-{primitive_type}"},
    )
    row = services.create(tenant, fields, ACTOR)
    services.publish(row.id, ACTOR)
    return row.id, versions(row.id)[0].id
