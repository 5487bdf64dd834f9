"""Every service that changes something for a user, with a call of it that would succeed."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.calls.links import Link
from mcphost.catalogue import (
    batches,
    documents,
    imported,
    saved_calls,
    selectors,
    updates,
    validation,
)
from mcphost.catalogue import services as catalogue
from mcphost.catalogue.documents import DocumentOwner, StoredDocument
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.saved_calls import Expectation, SavedRequest
from mcphost.console.records import entries, filter_store, question_searches
from mcphost.console.records.filter_store import FilterFields
from mcphost.console.users import changes
from mcphost.console.users.changes import PersonFields
from mcphost.identity import account_links, service_accounts, staff_tokens
from mcphost.identity import services as identity
from mcphost.identity.models import Token
from mcphost.identity.oauth import connections
from mcphost.identity.oauth.connections import Consent
from mcphost.identity.services import TokenRequest
from mcphost.serving.execution import cancelling
from mcphost.serving.execution import links as serving_links
from mcphost.tasks import listing
from mcphost.tasks.listing import ListedTask
from mcphost.tenant_file import plans
from mcphost.tenants import invitations
from mcphost.tenants import services as tenants
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import COMMON_SCOPES, READ_API, Audience, Role
from mcphost.tenants.selectors import snapshot
from mcphost.vault import lifecycle
from mcphost.vault.secrets import services as secrets
from tests.audit.recorded_calls import Story
from tests.cast import Cast
from tests.console.tenant_data import ACTOR, Things, told, tool_fields
from tests.oauth import CHALLENGE, REDIRECT, connect, connection_of, make_client, membership_of
from tests.tasks.rows import a_task

REMOVED, DEMOTED, DEACTIVATED, CLOSED, UNSTAFFED = (
    "removed from the tenant", "demoted", "deactivated", "tenant closed", "no longer staff",
)  # fmt: skip
OF_TENANT = (REMOVED, DEMOTED, DEACTIVATED, CLOSED, UNSTAFFED)
OF_PLATFORM = (UNSTAFFED, DEACTIVATED)
OF_MEMBER = (REMOVED, DEACTIVATED, CLOSED)
OF_READER = (REMOVED, DEMOTED, DEACTIVATED)
OF_ACCOUNT = (DEACTIVATED,)

EDIT: dict[str, Any] = {"title": "Changed"}


@dataclass(frozen=True, slots=True)
class Scene:
    """The cast, and what its tenant has."""

    cast: Cast
    things: Things

    @property
    def id(self) -> UUID:
        return self.things.tenant

    @property
    def tenant(self) -> Tenant:
        return Tenant.objects.get(pk=self.id)

    def tool(self) -> PrimitiveRow:
        row = selectors.primitive(self.things.tool)
        assert row is not None
        return row

    def second_version(self) -> None:
        catalogue.update(self.things.tool, replace(self.tool().fields, **EDIT), ACTOR)
        catalogue.publish(self.things.tool, ACTOR)

    def task(self) -> ListedTask:
        row = a_task(self.id, tool="deploy")
        task = listing.of_call(row.call, self.id)
        assert task is not None
        return task

    def waiting_call(self) -> UUID:
        story = Story.of(self.id, "deploy", at=timezone.now() - timedelta(minutes=1))
        story.ask("colour")
        told(story)
        return story.call.id


Service = Callable[..., Any]
Arguments = tuple[Any, ...] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """`arguments` sets the scene, and returns the arguments of the service but the actor."""

    service: Service
    arguments: Callable[[Scene, User], Arguments] = lambda scene, user: (scene.id,)
    person: str = "owner"
    losses: tuple[str, ...] = OF_TENANT

    @property
    def name(self) -> str:
        return f"{self.service.__module__.removeprefix('mcphost.')}.{self.service.__name__}"

    def prepare(self, scene: Scene, user: User) -> Callable[[], object]:
        """Return the call of the service by a user."""
        arguments, signature = self.arguments(scene, user), inspect.signature(self.service)
        positional, named = ((), arguments) if isinstance(arguments, dict) else (arguments, {})
        call = signature.bind_partial(*positional, **named)
        for name in {"actor", "who"} & signature.parameters.keys():
            call.arguments[name] = Actor.person(user.pk, user.get_username())
        return lambda: self.service(*call.args, **call.kwargs)


def _inspected(scene: Scene) -> validation.Inspected:
    return validation.inspect(scene.id, tool_fields("another"))


def _edited(scene: Scene) -> validation.Inspected:
    return validation.inspect(scene.id, replace(scene.tool().fields, **EDIT))


def _publish(scene: Scene, _: User) -> Arguments:
    catalogue.update(scene.things.tool, replace(scene.tool().fields, **EDIT), ACTOR)
    return (scene.things.tool,)


def _roll_back(scene: Scene, _: User) -> Arguments:
    scene.second_version()
    return scene.things.tool, scene.things.version


def _moved(*before: Callable[[UUID, Actor], object]) -> Callable[[Scene, User], Arguments]:
    def arguments(scene: Scene, _: User) -> Arguments:
        for verb in before:
            verb(scene.things.tool, ACTOR)
        return (scene.things.tool,)

    return arguments


def _save_call(scene: Scene, _: User) -> Arguments:
    return scene.things.tool, "again", SavedRequest({}, {}), Expectation("complete")


def _saved_call(scene: Scene, user: User) -> Arguments:
    saved_calls.save_call(*_save_call(scene, user), ACTOR)  # type: ignore[call-arg]
    return scene.things.tool, saved_calls.saved_calls(scene.things.tool)[0].id


def _grant(scene: Scene, _: User) -> Arguments:
    catalogue.revoke_grant(scene.id, "probe.echo", ACTOR)
    return scene.id, "probe.echo"


def _account(*before: Service) -> Callable[[Scene, User], Arguments]:
    def arguments(scene: Scene, _: User) -> Arguments:
        for verb in before:
            verb(scene.id, scene.things.account, actor=ACTOR)
        return scene.id, scene.things.account

    return arguments


def _old_key(*before: Callable[[str, Actor], object]) -> Callable[[Scene, User], Arguments]:
    def arguments(_: Scene, __: User) -> Arguments:
        key = lifecycle.rotate(ACTOR)
        for verb in before:
            verb(key, ACTOR)
        return (key,)

    return arguments


def _confirm_link(scene: Scene, _: User) -> Arguments:
    now = timezone.now()
    link = Link(scene.id, scene.things.call, "paid")
    return {"link": link, "expires_at": now + timedelta(hours=1), "now": now}


def _appoint(scene: Scene, _: User) -> Arguments:
    User.objects.filter(pk=scene.cast.owner.user.pk).update(is_active=False)
    return scene.id, "operator"


def _leave(scene: Scene, user: User) -> Arguments:
    tenants.set_member(scene.id, scene.cast.operator.user, Role.OWNER, actor=ACTOR)
    return scene.id, user


def _member_with_address(scene: Scene, user: User) -> Arguments:
    member = scene.cast.member.user
    User.objects.filter(pk=member.pk).update(email="member@x.example")
    return scene.id, User.objects.get(pk=member.pk)


def _invited(scene: Scene, user: User) -> Arguments:
    owner = scene.cast.owner.user
    link = invitations.invite(
        scene.id, "stranger", Role.MEMBER, actor=Actor.person(owner.pk, owner.get_username())
    ).link
    return link, user, timezone.now()


def _settings(scene: Scene, _: User) -> Arguments:
    fields = snapshot(scene.tenant).fields
    return scene.id, replace(fields, outgoing_hosts=("evil.example.com",))


def _member(*rest: Any) -> Callable[[Scene, User], Arguments]:
    return lambda scene, user: (scene.id, scene.cast.member.user, *rest)


def _token_of_member(scene: Scene, _: User) -> Arguments:
    return scene.id, Token.objects.filter(owner=scene.cast.member.user)[0].pk


def _renewed_by_member(scene: Scene, user: User) -> Arguments:
    token = Token.objects.filter(owner=scene.cast.member.user)[0].pk
    return {"tenant_id": scene.id, "token_id": token, "expires_at": None}


def _renewed_for_service(scene: Scene, _: User) -> Arguments:
    token = identity.issue_for_service(scene.id, scene.things.account, LAPTOP, actor=ACTOR)
    return {"tenant_id": scene.id, "token_id": token.id, "expires_at": None}


def _connection_of_member(scene: Scene, _: User) -> Arguments:
    connect(make_client(), scene.cast.member)
    return scene.id, connection_of(scene.cast.member)


def _consent(scene: Scene, _: User) -> Arguments:
    asked = Consent(make_client(), REDIRECT, CHALLENGE, tuple(COMMON_SCOPES))
    return membership_of(scene.cast.member).pk, asked


def _own_filter(*rest: Any) -> Callable[[Scene, User], Arguments]:
    return lambda scene, user: (user, scene.things.filter, *rest)


def _batch(scene: Scene, _: User) -> Arguments:
    basis = batches.read_basis(scene.id)
    desired = batches.DesiredPrimitive(tool_fields("another"))
    return basis, [batches.Preparation(basis, (), ()).prepare(desired)]


def _file(scene: Scene, _: User) -> Arguments:
    return (plans.make_plan(scene.id, b"format: 1\nprune: true\n"),)


VALUE = "another-value"
SECRET: dict[str, Any] = {"hosts": ["api.example.com"], "places": ["header"], "value": VALUE}
LAPTOP = TokenRequest("laptop", COMMON_SCOPES)
AUTOMATION = TokenRequest("automation", (READ_API,), Audience.API)


def _staff_token(scene: Scene, user: User) -> Arguments:
    return (staff_tokens.issue_staff_token(scene.cast.staff.user, AUTOMATION, actor=ACTOR).id,)


MINE = FilterFields("Mine", shared=True)
CASES = (
    Case(catalogue.create, lambda s, user: (s.id, tool_fields("another")), "operator"),
    Case(catalogue.create_inspected, lambda s, user: (s.id, _inspected(s)), "operator"),
    Case(
        catalogue.update,
        lambda s, user: (s.things.tool, replace(s.tool().fields, **EDIT)),
        "operator",
    ),
    Case(catalogue.update_inspected, lambda s, user: (s.things.tool, _edited(s)), "operator"),
    Case(catalogue.publish, _publish, "operator"),
    Case(catalogue.roll_back, _roll_back, "operator"),
    Case(catalogue.disable, _moved(), "operator"),
    Case(catalogue.enable, _moved(catalogue.disable), "operator"),
    Case(catalogue.archive, _moved(), "operator"),
    Case(catalogue.restore, _moved(catalogue.archive), "operator"),
    Case(catalogue.delete, _moved(catalogue.archive), "operator"),
    Case(catalogue.grant_function, _grant, "staff", (*OF_PLATFORM, CLOSED)),
    Case(
        catalogue.revoke_grant,
        lambda s, user: (s.id, "probe.echo"),
        "staff",
        (*OF_PLATFORM, CLOSED),
    ),
    Case(batches.store, _batch, "operator"),
    Case(plans.apply_plan, _file, "operator"),
    Case(saved_calls.save_call, _save_call, "operator"),
    Case(saved_calls.delete_call, _saved_call, "operator"),
    Case(imported.create, lambda s, user: (s.id, _inspected(s), {}), "operator"),
    Case(imported.change, lambda s, user: (s.tool(), _edited(s), {}), "operator"),
    Case(
        documents.store_document,
        lambda s, user: (DocumentOwner(s.id, user.pk), StoredDocument(b"{}", "")),
        "operator",
    ),
    Case(
        updates.announce_update,
        lambda s, user: (s.id, f"docs://canary-{s.things.slug}"),
        "operator",
    ),
    Case(entries.erase_payload, lambda s, user: (s.id, s.things.entry)),
    Case(filter_store.save, lambda s, user: (user, s.tenant, MINE, "tool=echo"), losses=OF_READER),
    Case(filter_store.save, lambda s, user: (user, None, MINE, "tool=echo"), "staff", OF_PLATFORM),
    Case(filter_store.change, _own_filter(FilterFields("Renamed", shared=True)), losses=OF_READER),
    Case(filter_store.delete, _own_filter(), losses=OF_READER),
    Case(
        question_searches.begin_search,
        lambda s, user: (user, s.id, ["refund"], {}),
        "auditor",
        OF_READER,
    ),
    Case(changes.create, lambda s, user: ("newcomer", PersonFields()), "staff", OF_PLATFORM),
    Case(
        changes.update,
        lambda s, user: (s.cast.member.user, PersonFields(is_staff=True)),
        "staff",
        OF_PLATFORM,
    ),
    Case(changes.set_password, lambda s, user: (s.cast.member.user, "pw"), "staff", OF_PLATFORM),
    Case(
        changes.set_password,
        lambda s, user: {"user": user, "password": "another-long-one", "checked": user.password},
        "member",
        OF_ACCOUNT,
    ),
    Case(account_links.issue, lambda s, user: (s.cast.member.user,), "staff", OF_PLATFORM),
    Case(account_links.issue_for_member, _member_with_address),
    Case(service_accounts.create, lambda s, user: (s.id, "robot")),
    Case(service_accounts.disable, _account()),
    Case(service_accounts.enable, _account(service_accounts.disable)),
    Case(service_accounts.remove, _account()),
    Case(identity.issue, lambda s, user: (s.id, user, LAPTOP), "operator", OF_MEMBER),
    Case(identity.issue_for_service, lambda s, user: (s.id, s.things.account, LAPTOP)),
    Case(identity.renew, _renewed_by_member, "member", OF_MEMBER),
    Case(identity.renew, _renewed_for_service),
    Case(identity.revoke, _token_of_member),
    Case(
        staff_tokens.issue_staff_token,
        lambda s, user: (s.cast.staff.user, AUTOMATION),
        "staff",
        OF_PLATFORM,
    ),
    Case(staff_tokens.revoke_staff_token, _staff_token, "staff", OF_PLATFORM),
    Case(connections.consent, _consent, "member", OF_MEMBER),
    Case(connections.end, _connection_of_member),
    Case(connections.end, _connection_of_member, "member", OF_ACCOUNT),
    Case(identity.revoke, _token_of_member, "member", OF_ACCOUNT),
    Case(cancelling.cancel, lambda s, user: (s.waiting_call(), s.id, "why"), "operator"),
    Case(cancelling.cancel_task, lambda s, user: (s.task(), "why"), "operator"),
    Case(cancelling.retry_task, lambda s, user: (s.task(),), "operator"),
    Case(serving_links.confirm_link, _confirm_link, "member", OF_MEMBER),
    Case(
        tenants.create_tenant,
        lambda s, user: ("initech", TenantFields(title="Initech")),
        "staff",
        OF_PLATFORM,
    ),
    Case(tenants.update_tenant, _settings),
    Case(tenants.close_tenant),
    Case(tenants.set_member, _member(Role.OPERATOR)),
    Case(tenants.appoint_owner, _appoint, "staff", (*OF_PLATFORM, CLOSED)),
    Case(tenants.grant_scopes, _member(["mcp:paint"])),
    Case(tenants.remove_member, _member()),
    Case(tenants.remove_member, _leave, losses=OF_ACCOUNT),
    Case(
        invitations.invite,
        lambda s, user: {"tenant_id": s.id, "username": "accomplice", "role": Role.OWNER},
    ),
    Case(invitations.withdraw, lambda s, user: (s.id, s.things.invitation)),
    Case(invitations.accept, _invited, "stranger", (DEACTIVATED, CLOSED)),
    Case(invitations.decline, _invited, "stranger", (DEACTIVATED, CLOSED)),
    Case(lifecycle.rotate, lambda s, user: (), "staff", OF_PLATFORM),
    Case(lifecycle.retire, _old_key(), "staff", OF_PLATFORM),
    Case(lifecycle.destroy, _old_key(lifecycle.retire), "staff", OF_PLATFORM),
    Case(lifecycle.destroy_salt),
    Case(
        secrets.create_secret,
        lambda s, user: {"tenant_id": s.id, "name": "another", **SECRET},
        "operator",
    ),
    Case(secrets.rotate_secret, lambda s, user: (s.id, s.things.secret, VALUE), "operator"),
    Case(
        secrets.change_secret,
        lambda s, user: {"tenant_id": s.id, "secret_id": s.things.secret, **SECRET},
        "operator",
    ),
    Case(secrets.delete_secret, lambda s, user: (s.id, s.things.secret), "operator"),
)

_ASKS = "it is what asks"
_OF_PLATFORM = "the platform itself acts, or a command of its operator"
_RECORD = "the record lies below the tenants: those who write into it ask"
_READS = "reads, and records what was read"
_PAGE = "a page, whose services are walked"
_HAS_LINK = "a person who has a link, and no session; the link is checked in the transaction"
_PART = "a part of services that have asked, in their transaction"
EXEMPT: Mapping[str, str] = {
    "audit.services.cancel_call": _RECORD,
    "audit.services.cancel_task": _RECORD,
    "audit.services.retry_task": _RECORD,
    "audit.services.erase_payload": f"{_RECORD} (console.records.entries.erase_payload)",
    "audit.services.record": _RECORD,
    "audit.services.record_each": _RECORD,
    "audit.services.record_with_payload": _RECORD,
    "calls.links.call_back": "a machine that has the address; it is no user",
    "calls.links.confirm": "serving.execution.links.confirm_link asks, in its transaction",
    "catalogue.openapi_imports.apply_rows": "calls imported.create and change, which are walked",
    "catalogue.openapi_imports.check_rows": "calls imported.create and change, which are walked",
    "catalogue.seeding.publish_functions": "by services that are walked, for commands",
    "console.base.actor": "names the actor of a request",
    "console.primitives.imports.page": _PAGE,
    "console.primitives.primitives.add": _PAGE,
    "console.primitives.primitives.edit": _PAGE,
    "console.records.entries.erase": _PAGE,
    "api.resources.calls.read_payloads": _READS,
    "console.records.entries.payload": _READS,
    "console.records.entries.view_on_record": _READS,
    "console.records.exports.export": _READS,
    "console.records.exports.export_all": _READS,
    "console.records.exports.export_file": _READS,
    "console.records.exports.export_part": _READS,
    "console.records.exports.part": _READS,
    "console.records.exports.part_of_all": _READS,
    "console.records.input_requests.payloads": _READS,
    "console.users.changes.locked_by": _ASKS,
    "console.users.users.add": _PAGE,
    "identity.account_links.use": _HAS_LINK,
    "identity.oauth.connections.connect": _PART,
    "identity.oauth.connections.end_now": _PART,
    "identity.passwords.check": "records attempts to sign in, of users who are not signed in",
    "serving.execution.links.confirm": "calls confirm_link, which is walked",
    "serving.execution.trials.end": "calls cancelling.cancel, which is walked",
    "serving.execution.trials.end_all": "calls cancelling.cancel, which is walked",
    "serving.execution.trials.end_of": "calls cancelling.cancel, which is walked",
    "tenants.access.lock_account": _ASKS,
    "tenants.access.lock_open_tenant": _ASKS,
    "tenants.access.lock_tenant": _ASKS,
    "tenants.access.require_still": _ASKS,
    "tenants.invitations.set_up": _HAS_LINK,
    "tenants.services.end_invitations": _PART,
    "tenants.services.member_changed": _PART,
    "vault.lifecycle.rotate_if_old": _OF_PLATFORM,
    "vault.lifecycle.run_due_transitions": _OF_PLATFORM,
    "vault.rewrapping.rewrap": _OF_PLATFORM,
    "vault.services.ensure_ring": _OF_PLATFORM,
    "vault.services.ensure_tenant": _OF_PLATFORM,
}
"""Functions that take or name an actor and are no service that a user may use, each with the reason."""
