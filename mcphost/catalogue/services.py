"""Everything that changes the catalogue. Each verb is one transaction, one entry in the record and
one change in the feed; who may use it is decided by the caller (`tenants.access`).

Raises errors.Invalid, errors.WrongStateError and errors.UnknownError.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max

from mcphost.audit import services as audit
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, validation
from mcphost.catalogue.compiling import Ready, label
from mcphost.catalogue.errors import Invalid, UnknownError, WrongStateError
from mcphost.catalogue.fields import ToolFields, changed, code, snapshot, working_copy
from mcphost.catalogue.models import Grant, Tool, ToolVersion
from mcphost.catalogue.rows import ToolRow, tool_row
from mcphost.catalogue.states import State, Verb, following
from mcphost.feed.services import announce
from mcphost.tenants.models import Tenant

FIXED = "It was published: clients know the tool by its name, so it stays. Make a new tool instead."


@transaction.atomic
def create_tool(tenant_id: UUID, fields: ToolFields, actor: Actor) -> ToolRow:
    """Make a draft."""
    tenant = _tenant(tenant_id)
    fields = validation.normal(fields)
    validation.check(tenant_id, fields)
    tool = Tool(tenant=tenant)
    _store(tool, fields)
    _record("tool.created", tool, actor, {"kind": tool.kind})
    return tool_row(tool)


@transaction.atomic
def update_tool(tool_id: UUID, fields: ToolFields, actor: Actor) -> ToolRow:
    """Change the working copy. What is served stays as it was published.

    Fields that are as they were change nothing: no entry, no news.
    """
    tool = _locked(tool_id)
    before = working_copy(tool)
    fields = validation.normal(fields)
    names = changed(before, fields)
    if not names:
        return tool_row(tool)
    _check_fixed(tool, names)
    validation.check(tool.tenant_id, fields, tool.id)
    _store(tool, fields)
    _record("tool.updated", tool, actor, {"changed": names})
    return tool_row(tool)


@transaction.atomic
def publish(tool_id: UUID, actor: Actor) -> ToolRow:
    """Write the working copy down as the next version, and serve it from now on."""
    tool = _locked(tool_id)
    state = _next_state(tool, Verb.PUBLISH)
    fields = working_copy(tool)
    ready = validation.check(tool.tenant_id, fields, tool.id)
    version = _write_version(tool, fields, ready, actor)
    _move(tool, state, version)
    facts = {
        "number": version.number,
        "digest": version.digest,
        "version": label(version.number, version.digest),
    }
    _record("tool.published", tool, actor, facts)
    return tool_row(tool)


@transaction.atomic
def disable(tool_id: UUID, actor: Actor) -> ToolRow:
    """Serve the tool no more, until it is enabled or published again."""
    tool = _locked(tool_id)
    _move(tool, _next_state(tool, Verb.DISABLE), tool.live)
    _record("tool.disabled", tool, actor, {"version": str(tool.live)})
    return tool_row(tool)


@transaction.atomic
def enable(tool_id: UUID, actor: Actor) -> ToolRow:
    """Serve the version that was published last, whatever the working copy holds by now."""
    tool = _locked(tool_id)
    state = _next_state(tool, Verb.ENABLE)
    function = tool.live.function if tool.live else ""
    if refused := validation.check_grant(tool.tenant_id, function):
        raise Invalid({f"config.{kinds.GRANTED_BY_STAFF[tool.kind]}": refused})
    _move(tool, state, tool.live)
    _record("tool.enabled", tool, actor, {"version": str(tool.live)})
    return tool_row(tool)


@transaction.atomic
def grant_function(tenant_id: UUID, function: str, actor: Actor) -> bool:
    """Let a tenant use a function; whether that is new. For platform staff.

    Raises Invalid, on `function`, when the code has no such function.
    """
    tenant = _tenant(tenant_id)
    if function not in dict(kinds.functions()):
        raise Invalid({"function": [f"There is no function {function[:200]!r} in the code."]})
    _, new = Grant.objects.get_or_create(tenant=tenant, function=function)
    if new:
        _record_grant("function.granted", tenant_id, function, actor)
    return new


@transaction.atomic
def revoke_grant(tenant_id: UUID, function: str, actor: Actor) -> bool:
    """Take a function away from a tenant; whether it had it. For platform staff.

    The tenant's tools stay as they are, and are not served while the function is not granted.
    """
    count, _ = Grant.objects.filter(tenant=tenant_id, function=function).delete()
    if count:
        _record_grant("function.revoked", tenant_id, function, actor)
    return bool(count)


def _tenant(tenant_id: UUID) -> Tenant:
    tenant = Tenant.objects.open().filter(pk=tenant_id).first()
    if tenant is None:
        raise UnknownError("tenant", tenant_id)
    return tenant


def _locked(tool_id: UUID) -> Tool:
    """The row, held until the transaction ends, so that its state and its count do not move."""
    rows = Tool.objects.select_for_update(of=("self",)).select_related("tenant", "live")
    tool = rows.filter(pk=tool_id, tenant__closed_at=None).first()
    if tool is None:
        raise UnknownError("tool", tool_id)
    return tool


def _next_state(tool: Tool, verb: Verb) -> State:
    state = following(State(tool.state), verb)
    if state is None:
        raise WrongStateError(tool.name, State(tool.state), verb)
    return state


def _check_fixed(tool: Tool, names: list[str]) -> None:
    problems = {}
    if "name" in names and tool.live_id:
        problems["name"] = [FIXED]
    if "kind" in names:
        problems["kind"] = ["The kind of a tool stays. Make a new tool instead."]
    if problems:
        raise Invalid(problems)


def _store(tool: Tool, fields: ToolFields) -> None:
    for name in fields.__dataclass_fields__:
        setattr(tool, name, getattr(fields, name))
    try:
        with transaction.atomic():
            tool.save()
    except IntegrityError:
        # Somebody else took the name between the check and here.
        raise Invalid({"name": [validation.TAKEN]}) from None


def _write_version(tool: Tool, fields: ToolFields, ready: Ready, actor: Actor) -> ToolVersion:
    last = tool.versions.aggregate(last=Max("number"))["last"] or 0
    return ToolVersion.objects.create(
        tool=tool,
        number=last + 1,
        digest=ready.digest,
        function=kinds.function_of(fields.kind, fields.config),
        snapshot=snapshot(fields),
        code=code(ready.compiled),
        published_by=(actor.label or actor.kind)[:200],
    )


def _move(tool: Tool, state: State, live: ToolVersion | None) -> None:
    tool.state, tool.live = state, live
    tool.save(update_fields=["state", "live", "updated_at"])


def _record(action: str, tool: Tool, actor: Actor, facts: Mapping[str, Any]) -> None:
    audit.record(action, actor=actor, tenant=tool.tenant_id, target=tool.name, facts=facts)
    announce("tool", tenant=tool.tenant_id, object_id=str(tool.id))


def _record_grant(action: str, tenant_id: UUID, function: str, actor: Actor) -> None:
    audit.record(action, actor=actor, tenant=tenant_id, target=function, facts={})
    announce("tool", tenant=tenant_id, object_id=function)
