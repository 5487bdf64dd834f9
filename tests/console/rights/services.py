"""Every service that changes something for a user, with a call of it that would succeed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.calls.links import Link
from mcphost.catalogue import documents, imported, selectors, updates, validation
from mcphost.catalogue import services as catalogue
from mcphost.catalogue.documents import DocumentOwner, StoredDocument
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.console.records import entries, filter_store
from mcphost.console.records.filter_store import FilterFields
from mcphost.console.users import changes
from mcphost.console.users.changes import PersonFields
from mcphost.identity import service_accounts
from mcphost.identity import services as identity
from mcphost.identity.models import Token
from mcphost.identity.services import TokenRequest
from mcphost.serving.execution import cancelling
from mcphost.serving.execution import links as serving_links
from mcphost.tasks import listing
from mcphost.tasks.listing import ListedTask
from mcphost.tenants import invitations
from mcphost.tenants import services as tenants
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import COMMON_SCOPES, Role
from mcphost.tenants.selectors import snapshot
from mcphost.vault import lifecycle
from mcphost.vault.secrets import services as secrets
from tests.audit.asking import Story
from tests.cast import Cast
from tests.console.things import ACTOR, Things, told, tool_fields
from tests.tasks.rows import a_task

REMOVED, DEMOTED, DEACTIVATED, CLOSED, UNSTAFFED = (
    "removed from the tenant",
    "demoted",
    "deactivated",
    "tenant closed",
    "no longer staff",
)
OF_TENANT = (REMOVED, DEMOTED, DEACTIVATED, CLOSED, UNSTAFFED)
OF_PLATFORM = (UNSTAFFED, DEACTIVATED)
OF_MEMBER = (REMOVED, DEACTIVATED, CLOSED)
OF_READER = (REMOVED, DEMOTED, DEACTIVATED)
OF_ACCOUNT = (DEACTIVATED,)

EDIT = {"title": "Changed"}


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


Act = Callable[[User, Actor], object]
Service = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Case:
    """`prepare` sets the scene, and returns the call of the service by a user."""

    service: Service
    prepare: Callable[[Scene], Act]
    person: str = "owner"
    losses: tuple[str, ...] = OF_TENANT

    @property
    def name(self) -> str:
        return f"{self.service.__module__.removeprefix('mcphost.')}.{self.service.__name__}"


def _create_inspected(scene: Scene) -> Act:
    inspected = validation.inspect(scene.id, tool_fields("another"))
    return lambda user, actor: catalogue.create_inspected(scene.id, inspected, actor)


def _update_inspected(scene: Scene) -> Act:
    row = scene.tool()
    inspected = validation.inspect(scene.id, replace(row.fields, **EDIT))
    return lambda user, actor: catalogue.update_inspected(row.id, inspected, actor)


def _import(scene: Scene) -> Act:
    inspected = validation.inspect(scene.id, tool_fields("another"))
    return lambda user, actor: imported.create(scene.id, inspected, {}, actor)


def _import_again(scene: Scene) -> Act:
    row = scene.tool()
    inspected = validation.inspect(scene.id, replace(row.fields, **EDIT))
    return lambda user, actor: imported.change(row, inspected, {}, actor)


def _update(scene: Scene) -> Act:
    row = scene.tool()
    wanted = replace(row.fields, **EDIT)
    return lambda user, actor: catalogue.update(row.id, wanted, actor)


def _publish(scene: Scene) -> Act:
    catalogue.update(scene.things.tool, replace(scene.tool().fields, **EDIT), ACTOR)
    return lambda user, actor: catalogue.publish(scene.things.tool, actor)


def _roll_back(scene: Scene) -> Act:
    scene.second_version()
    things = scene.things
    return lambda user, actor: catalogue.roll_back(things.tool, things.version, actor)


def _moved(service: Service, *before: Callable[[UUID, Actor], object]) -> Callable[[Scene], Act]:
    def prepare(scene: Scene) -> Act:
        for verb in before:
            verb(scene.things.tool, ACTOR)
        return lambda user, actor: service(scene.things.tool, actor)

    return prepare


def _grant(scene: Scene) -> Act:
    catalogue.revoke_grant(scene.id, "probe.echo", ACTOR)
    return lambda user, actor: catalogue.grant_function(scene.id, "probe.echo", actor)


def _switch(service: Service, *before: Service) -> Callable[[Scene], Act]:
    def prepare(scene: Scene) -> Act:
        for verb in before:
            verb(scene.id, scene.things.account, actor=ACTOR)
        return lambda user, actor: service(scene.id, scene.things.account, actor=actor)

    return prepare


def _retire(scene: Scene) -> Act:
    key = lifecycle.rotate(ACTOR)
    return lambda user, actor: lifecycle.retire(key, actor)


def _destroy(scene: Scene) -> Act:
    key = lifecycle.rotate(ACTOR)
    lifecycle.retire(key, ACTOR)
    return lambda user, actor: lifecycle.destroy(key, actor)


def _keep(scene: Scene) -> Act:
    document = StoredDocument(b"{}", "")
    return lambda user, actor: documents.keep(DocumentOwner(scene.id, user.pk), document)


def _confirm_link(scene: Scene) -> Act:
    now = timezone.now()
    link = Link(scene.id, scene.things.call, "paid")
    until = now + timedelta(hours=1)
    return lambda user, actor: serving_links.confirm_link(link, actor, until, now)


def _appoint(scene: Scene) -> Act:
    User.objects.filter(pk=scene.cast.owner.user.pk).update(is_active=False)
    return lambda user, actor: tenants.appoint_owner(scene.id, "operator", actor=actor)


def _leave(scene: Scene) -> Act:
    tenants.set_member(scene.id, scene.cast.operator.user, Role.OWNER, actor=ACTOR)
    return lambda user, actor: tenants.remove_member(scene.id, user, actor=actor)


def _invited(service: Service) -> Callable[[Scene], Act]:
    def prepare(scene: Scene) -> Act:
        owner = scene.cast.owner.user
        link = invitations.invite(scene.id, "stranger", Role.MEMBER, inviter=owner).link
        return lambda user, actor: service(link, user, timezone.now())

    return prepare


def _settings(scene: Scene) -> Act:
    wanted = replace(snapshot(scene.tenant).fields, outgoing_hosts=("evil.example.com",))
    return lambda user, actor: tenants.update_tenant(scene.id, wanted, actor=actor)


def _own_token(scene: Scene) -> Act:
    wanted = TokenRequest("laptop", COMMON_SCOPES)
    return lambda user, actor: identity.issue(scene.id, user, wanted, actor=actor)


def _service_token(scene: Scene) -> Act:
    wanted, account = TokenRequest("laptop", COMMON_SCOPES), scene.things.account
    return lambda user, actor: identity.issue_for_service(scene.id, account, wanted, actor=actor)


def _revoke(scene: Scene) -> Act:
    token = Token.objects.filter(owner=scene.cast.member.user)[0].pk
    return lambda user, actor: identity.revoke(scene.id, token, actor=actor)


def _filter(service: Service, *rest: Any) -> Callable[[Scene], Act]:
    def prepare(scene: Scene) -> Act:
        return lambda user, actor: service(user, scene.things.filter, *rest)

    return prepare


def _platform_filter(scene: Scene) -> Act:
    wanted = FilterFields("Mine", shared=True)
    return lambda user, actor: filter_store.save(user, None, wanted, "tool=echo")


def _own_password(scene: Scene) -> Act:
    def act(user: User, actor: Actor) -> object:
        return changes.set_password(user, "another-long-password", actor, checked=user.password)

    return act


def _task(service: Callable[[ListedTask, Actor], bool]) -> Callable[[Scene], Act]:
    def prepare(scene: Scene) -> Act:
        task = scene.task()
        return lambda user, actor: service(task, actor)

    return prepare


def _cancel(scene: Scene) -> Act:
    call = scene.waiting_call()
    return lambda user, actor: cancelling.cancel(call, scene.id, "why", actor)


VALUE = "another-value"
SECRET: dict[str, Any] = {"hosts": ["api.example.com"], "places": ["header"]}
CASES = (
    Case(
        catalogue.create,
        lambda s: lambda user, actor: catalogue.create(s.id, tool_fields("another"), actor),
        "operator",
    ),
    Case(catalogue.create_inspected, _create_inspected, "operator"),
    Case(catalogue.update, _update, "operator"),
    Case(catalogue.update_inspected, _update_inspected, "operator"),
    Case(catalogue.publish, _publish, "operator"),
    Case(catalogue.roll_back, _roll_back, "operator"),
    Case(catalogue.disable, _moved(catalogue.disable), "operator"),
    Case(catalogue.enable, _moved(catalogue.enable, catalogue.disable), "operator"),
    Case(catalogue.archive, _moved(catalogue.archive), "operator"),
    Case(catalogue.restore, _moved(catalogue.restore, catalogue.archive), "operator"),
    Case(catalogue.delete, _moved(catalogue.delete, catalogue.archive), "operator"),
    Case(catalogue.grant_function, _grant, "staff", (*OF_PLATFORM, CLOSED)),
    Case(
        catalogue.revoke_grant,
        lambda s: lambda user, actor: catalogue.revoke_grant(s.id, "probe.echo", actor),
        "staff",
        (*OF_PLATFORM, CLOSED),
    ),
    Case(imported.create, _import, "operator"),
    Case(imported.change, _import_again, "operator"),
    Case(documents.keep, _keep, "operator"),
    Case(
        updates.announce_update,
        lambda s: (
            lambda user, actor: updates.announce_update(
                s.id, f"docs://canary-{s.things.slug}", actor
            )
        ),
        "operator",
    ),
    Case(
        entries.erase_payload,
        lambda s: lambda user, actor: entries.erase_payload(s.id, s.things.entry, actor),
    ),
    Case(
        filter_store.save,
        lambda s: (
            lambda user, actor: filter_store.save(
                user, s.tenant, FilterFields("Mine", shared=True), "tool=echo"
            )
        ),
        losses=OF_READER,
    ),
    Case(filter_store.save, _platform_filter, "staff", OF_PLATFORM),
    Case(
        filter_store.change,
        _filter(filter_store.change, FilterFields("Renamed", shared=True)),
        losses=OF_READER,
    ),
    Case(filter_store.delete, _filter(filter_store.delete), losses=OF_READER),
    Case(
        changes.create,
        lambda s: lambda user, actor: changes.create("newcomer", "pw", PersonFields(), actor),
        "staff",
        OF_PLATFORM,
    ),
    Case(
        changes.update,
        lambda s: (
            lambda user, actor: changes.update(
                s.cast.member.user, PersonFields(is_staff=True), actor
            )
        ),
        "staff",
        OF_PLATFORM,
    ),
    Case(
        changes.set_password,
        lambda s: lambda user, actor: changes.set_password(s.cast.member.user, "pw", actor),
        "staff",
        OF_PLATFORM,
    ),
    Case(changes.set_password, _own_password, "member", OF_ACCOUNT),
    Case(
        service_accounts.create,
        lambda s: lambda user, actor: service_accounts.create(s.id, "robot", actor=actor),
    ),
    Case(service_accounts.disable, _switch(service_accounts.disable)),
    Case(service_accounts.enable, _switch(service_accounts.enable, service_accounts.disable)),
    Case(service_accounts.remove, _switch(service_accounts.remove)),
    Case(identity.issue, _own_token, "operator", OF_MEMBER),
    Case(identity.issue_for_service, _service_token),
    Case(identity.revoke, _revoke),
    Case(identity.revoke, _revoke, "member", OF_ACCOUNT),
    Case(cancelling.cancel, _cancel, "operator"),
    Case(
        cancelling.cancel_task,
        _task(lambda task, actor: cancelling.cancel_task(task, "why", actor)),
        "operator",
    ),
    Case(cancelling.retry_task, _task(cancelling.retry_task), "operator"),
    Case(serving_links.confirm_link, _confirm_link, "member", OF_MEMBER),
    Case(
        tenants.create_tenant,
        lambda s: (
            lambda user, actor: tenants.create_tenant(
                "initech", TenantFields(title="Initech"), actor=actor
            )
        ),
        "staff",
        OF_PLATFORM,
    ),
    Case(tenants.update_tenant, _settings),
    Case(
        tenants.close_tenant,
        lambda s: lambda user, actor: tenants.close_tenant(s.id, actor=actor),
    ),
    Case(
        tenants.set_member,
        lambda s: (
            lambda user, actor: tenants.set_member(
                s.id, s.cast.member.user, Role.OPERATOR, actor=actor
            )
        ),
    ),
    Case(tenants.appoint_owner, _appoint, "staff", (*OF_PLATFORM, CLOSED)),
    Case(
        tenants.grant_scopes,
        lambda s: (
            lambda user, actor: tenants.grant_scopes(
                s.id, s.cast.member.user, ["mcp:paint"], actor=actor
            )
        ),
    ),
    Case(
        tenants.remove_member,
        lambda s: lambda user, actor: tenants.remove_member(s.id, s.cast.member.user, actor=actor),
    ),
    Case(tenants.remove_member, _leave, losses=OF_ACCOUNT),
    Case(
        invitations.invite,
        lambda s: (
            lambda user, actor: invitations.invite(s.id, "accomplice", Role.OWNER, inviter=user)
        ),
    ),
    Case(
        invitations.withdraw,
        lambda s: lambda user, actor: invitations.withdraw(s.id, s.things.invitation, actor=actor),
    ),
    Case(invitations.accept, _invited(invitations.accept), "stranger", (DEACTIVATED, CLOSED)),
    Case(invitations.decline, _invited(invitations.decline), "stranger", (DEACTIVATED, CLOSED)),
    Case(
        lifecycle.rotate,
        lambda s: lambda user, actor: lifecycle.rotate(actor),
        "staff",
        OF_PLATFORM,
    ),
    Case(lifecycle.retire, _retire, "staff", OF_PLATFORM),
    Case(lifecycle.destroy, _destroy, "staff", OF_PLATFORM),
    Case(
        lifecycle.destroy_salt,
        lambda s: lambda user, actor: lifecycle.destroy_salt(s.id, actor),
    ),
    Case(
        secrets.create_secret,
        lambda s: (
            lambda user, actor: secrets.create_secret(s.id, "another", VALUE, **SECRET, actor=actor)
        ),
        "operator",
    ),
    Case(
        secrets.rotate_secret,
        lambda s: (
            lambda user, actor: secrets.rotate_secret(s.id, s.things.secret, VALUE, actor=actor)
        ),
        "operator",
    ),
    Case(
        secrets.change_secret,
        lambda s: (
            lambda user, actor: secrets.change_secret(
                s.id, s.things.secret, **SECRET, value=VALUE, actor=actor
            )
        ),
        "operator",
    ),
    Case(
        secrets.delete_secret,
        lambda s: lambda user, actor: secrets.delete_secret(s.id, s.things.secret, actor=actor),
        "operator",
    ),
)

_ASKS = "it is what asks"
_OF_PLATFORM = "the platform itself acts, or a command of its operator"
_RECORD = "the record lies below the tenants: those who write into it ask"
_READS = "reads, and records what was read"
_PAGE = "a page, whose services are walked"
_PART = "a part of services that have asked, in their transaction"
EXEMPT: Mapping[str, str] = {
    "audit.services.cancel_call": _RECORD,
    "audit.services.cancel_task": _RECORD,
    "audit.services.erase_payload": f"{_RECORD} (console.records.entries.erase_payload)",
    "audit.services.record": _RECORD,
    "audit.services.record_each": _RECORD,
    "calls.links.call_back": "a machine that has the address; it is no user",
    "calls.links.confirm": "serving.execution.links.confirm_link asks, in its transaction",
    "catalogue.seeding.publish_functions": "by services that are walked, for commands",
    "console.base.actor": "names the actor of a request",
    "console.primitives.imports.page": _PAGE,
    "console.primitives.primitives.add": _PAGE,
    "console.primitives.primitives.edit": _PAGE,
    "console.records.entries.erase": _PAGE,
    "console.records.entries.payload": _READS,
    "console.records.entries.view_on_record": _READS,
    "console.records.exports.export": _READS,
    "console.records.exports.export_all": _READS,
    "console.records.exports.part": _READS,
    "console.records.exports.part_of_all": _READS,
    "console.users.changes.locked_by": _ASKS,
    "identity.passwords.check": "records attempts to sign in, of users who are not signed in",
    "serving.execution.links.confirm": "calls confirm_link, which is walked",
    "serving.execution.trials.end": "calls cancelling.cancel, which is walked",
    "tenants.access.lock_account": _ASKS,
    "tenants.access.lock_open_tenant": _ASKS,
    "tenants.access.lock_tenant": _ASKS,
    "tenants.access.require_still": _ASKS,
    "tenants.services.end_invitations": _PART,
    "tenants.services.member_changed": _PART,
    "vault.lifecycle.rotate_if_old": _OF_PLATFORM,
    "vault.lifecycle.run_due_transitions": _OF_PLATFORM,
    "vault.rewrapping.rewrap": _OF_PLATFORM,
    "vault.services.ensure_ring": _OF_PLATFORM,
    "vault.services.ensure_tenant": _OF_PLATFORM,
}
"""Functions that take or name an actor and are no service that a user may use, each with the reason."""
