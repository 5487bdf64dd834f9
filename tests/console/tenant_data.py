"""Data of every type that a tenant can have, each with a unique text to search for."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from mcphost.audit.models import Entry, Payload
from mcphost.audit.ports import payload_cipher
from mcphost.audit.records import ROUND_FINISHED, ROUND_STARTED, Actor, new_id
from mcphost.catalogue import saved_calls
from mcphost.catalogue import services as catalogue
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.saved_calls import Expectation, SavedRequest
from mcphost.catalogue.selectors import versions
from mcphost.console.records.filter_store import FilterFields, save
from mcphost.identity.service_accounts import create
from mcphost.identity.services import TokenRequest, issue
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.invitations import invite
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Role
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.tenants.services import update_tenant
from mcphost.vault.secrets.services import create_secret
from mcphost.vault.services import ensure_tenant
from tests.audit.recorded_calls import Story, keep
from tests.cast import Person
from tests.oauth import connect, connection_of, make_client

ACTOR = Actor.system("tests")


@dataclass(frozen=True, slots=True)
class Things:
    """The data of a tenant. `canaries` are texts that only the tenant's members may ever see."""

    tenant: UUID
    slug: str
    tool: UUID
    version: UUID
    prompt: UUID
    resource: UUID
    template: UUID
    token: str
    connection: UUID
    call: UUID
    entry: UUID
    user: int
    account: UUID
    secret: UUID
    invitation: UUID
    link: str
    filter: UUID
    saved_call: UUID

    @property
    def canaries(self) -> tuple[str, ...]:
        own = (
            self.tool,
            self.prompt,
            self.resource,
            self.template,
            self.token,
            self.connection,
            self.call,
            self.entry,
            self.account,
            self.secret,
            self.invitation,
            self.filter,
            self.saved_call,
            self.tenant,
            f"/t/{self.slug}/",
        )
        return (f"canary-{self.slug}", *map(str, own))


def fill(tenant: TenantSnapshot, owner: Person) -> Things:
    """Give a tenant a published tool, a token, a recorded call, and recognizable texts."""
    return called(tenant, furnish(tenant, owner))


def called(tenant: TenantSnapshot, furnished: Mapping[str, Any]) -> Things:
    """Record a call of the tool, now: what ended when is what pages of records are about."""
    canary, call = f"canary-{tenant.slug}", uuid4()
    entry = recorded(tenant.id, call, target=f"{canary}-tool", reason=f"{canary}-reason")
    said(tenant.id, entry, {"arguments": {"text": f"{canary}-said"}})
    return Things(**furnished, call=call, entry=entry)


def furnish(tenant: TenantSnapshot, owner: Person) -> dict[str, Any]:
    """Give a tenant all things but the call; return the fields of `Things` about them."""
    canary = f"canary-{tenant.slug}"
    told = replace(tenant.fields, title=f"{canary}-title", instructions=f"{canary}-instructions")
    update_tenant(tenant.id, told, actor=ACTOR)
    catalogue.grant_function(tenant.id, "probe.echo", ACTOR)
    tool = catalogue.create(tenant.id, tool_fields(f"{canary}-tool"), ACTOR)
    catalogue.publish(tool.id, ACTOR, note=f"{canary}-note")
    version = versions(tool.id)[0].id
    prompt, resource, template = (
        catalogue.publish(catalogue.create(tenant.id, fields, ACTOR).id, ACTOR).id
        for fields in written(canary)
    )
    wanted = TokenRequest(f"{canary}-token", (LIST_TOOLS, CALL_TOOLS))
    token = issue(tenant.id, owner.user, wanted, actor=ACTOR)
    connect(make_client(f"https://{canary}.example.com/client.json", f"{canary}-app"), owner)
    account = create(tenant.id, f"{canary}-account", actor=ACTOR)
    secret = create_secret(
        tenant.id,
        f"{canary}_secret".replace("-", "_"),
        f"{canary}-value",
        hosts=[f"{canary}.example.com"],
        places=["header"],
        actor=ACTOR,
    )
    invited = invite(
        tenant.id,
        f"{canary}-invited",
        Role.OWNER,
        actor=Actor.person(owner.user.pk, owner.user.get_username()),
    )
    named = FilterFields(f"{canary}-filter", shared=True)
    saved = save(owner.user, Tenant.objects.get(pk=tenant.id), named, f"tool={canary}")
    ensure_tenant(tenant.id)
    request = SavedRequest({}, {"text": f"{canary}-argument"})
    saved_calls.save_call(tool.id, f"{canary}-call", request, Expectation("complete"), ACTOR)
    return {
        "saved_call": saved_calls.saved_calls(tool.id)[0].id,
        "tenant": tenant.id,
        "slug": tenant.slug,
        "tool": tool.id,
        "version": version,
        "prompt": prompt,
        "resource": resource,
        "template": template,
        "token": token.id,
        "connection": connection_of(owner),
        "user": owner.user.pk,
        "account": account,
        "secret": secret,
        "invitation": invited.id,
        "link": invited.link,
        "filter": saved.id,
    }


def written(canary: str) -> Iterator[PrimitiveFields]:
    """Yield a prompt, a resource and a template that are written in the console."""
    message = {"role": "user", "content": {"type": "text", "text": f"{canary} asks {{who}}"}}
    prompt = {"arguments": [{"name": "who", "choices": ["Ada"]}], "messages": [message]}
    resource = {"uri": f"docs://{canary}", "text": f"{canary}-text", "mime_type": "text/plain"}
    template = {"uri": f"docs://{canary}/{{page}}", "text": "page {page}"}
    yield text_fields(PrimitiveType.PROMPT, f"{canary}-prompt", prompt, description=canary)
    yield text_fields(PrimitiveType.RESOURCE, f"{canary}-resource", resource)
    yield text_fields(PrimitiveType.TEMPLATE, f"{canary}-template", template)


def text_fields(
    sort: PrimitiveType, name: str, config: dict[str, Any], **others: Any
) -> PrimitiveFields:
    """Return the fields of a primitive that is written in the console."""
    return PrimitiveFields(name=name, primitive_type=sort, kind="text", config=config, **others)


def tool_fields(name: str = "echo", **others: Any) -> PrimitiveFields:
    """Return the fields of a tool that runs `probe.echo`."""
    return replace(PrimitiveFields(name=name, config={"function": "probe.echo"}), **others)


def recorded(tenant: UUID | None, call: UUID | None, **columns: Any) -> UUID:
    """Write an entry, by default of a finished round; return its id."""
    columns = {
        "action": ROUND_FINISHED,
        "round": 1,
        "outcome": "complete",
        "actor_kind": "token",
        "actor_label": "olga (laptop)",
        "method": "tools/call",
        "duration_us": 1500,
        "bytes_in": 40,
        "bytes_out": 2048,
        **columns,
    }
    entry = Entry.objects.create(
        id=new_id(), at=timezone.now(), tenant=tenant, call=call, **columns
    )
    return entry.id


def started(tenant: UUID, call: UUID, **columns: Any) -> UUID:
    """Write an entry of a round that began; return its id."""
    sizes = {"outcome": "", "duration_us": None, "bytes_out": None}
    return recorded(tenant, call, action=ROUND_STARTED, **sizes, **columns)


def said(tenant: UUID, entry: UUID, content: Any) -> None:
    """Write the payload of an entry, encrypted as the product does."""
    ensure_tenant(tenant)
    cipher = payload_cipher()
    assert cipher is not None
    sealed = cipher.commit_and_seal(tenant, json.dumps(content).encode())
    Payload.objects.create(
        entry=entry, tenant=tenant, key_id=sealed.key_id, ciphertext=sealed.ciphertext
    )


def told(*stories: Story) -> None:
    """Write the entries of calls that ask, with their payloads."""
    keep(*stories)
    for record in (each for story in stories for each in story.made):
        if record.payload is not None and record.tenant is not None:
            said(record.tenant, record.id, record.payload)


def asking(things: Things, *, ago: timedelta = timedelta(minutes=5)) -> Story:
    """Return a call whose first round asks two questions: one is answered, the other waits."""
    canary = f"canary-{things.slug}"
    story = Story.of(things.tenant, f"{canary}-asks", at=timezone.now() - ago)
    story.call = story.call._replace(arguments={"of": f"{canary}-argument"})
    story.play("start; ask reason colour")
    reply = {"action": "accept", "content": {"reason": f"{canary}-answer"}}
    story.back(timedelta(minutes=2)).answer("reason", payload=reply)
    story.play("start; ask colour")
    return story
