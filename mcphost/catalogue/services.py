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
from mcphost.catalogue.fields import PrimitiveFields, changed, code, snapshot, working_copy
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.catalogue.rows import PrimitiveRow, primitive_row
from mcphost.catalogue.states import State, Verb, following
from mcphost.feed.services import announce
from mcphost.kinds.sorts import Sort
from mcphost.tenants.models import Tenant

_FIXED = "It was published: clients know it by this, so it stays. Make a new one instead."
_NEWS = {Sort.TEMPLATE: "resource"}
"""What the feed calls changes of a sort, where that is not its name."""


@transaction.atomic
def create(tenant_id: UUID, fields: PrimitiveFields, actor: Actor) -> PrimitiveRow:
    """Make a draft."""
    tenant = _tenant(tenant_id)
    fields = validation.normal(fields)
    ready = validation.check(tenant_id, fields)
    row = Primitive(tenant=tenant)
    _store(row, fields, ready)
    _record("created", row, actor, {"kind": row.kind})
    return primitive_row(row)


@transaction.atomic
def update(primitive_id: UUID, fields: PrimitiveFields, actor: Actor) -> PrimitiveRow:
    """Change the working copy. What is served stays as it was published.

    Fields that are as they were change nothing: no entry, no news.
    """
    row = _locked(primitive_id)
    before = working_copy(row)
    fields = validation.normal(fields)
    names = changed(before, fields)
    if not names:
        return primitive_row(row)
    _check_fixed(row, names)
    ready = validation.check(row.tenant_id, fields, row.id)
    if row.live_id and (row.uri or "") != ready.compiled.uri:
        raise Invalid({validation.uri_field(fields): [_FIXED]})
    _store(row, fields, ready)
    _record("updated", row, actor, {"changed": names})
    return primitive_row(row)


@transaction.atomic
def publish(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Write the working copy down as the next version, and serve it from now on."""
    row = _locked(primitive_id)
    state = _next_state(row, Verb.PUBLISH)
    fields = working_copy(row)
    ready = validation.check(row.tenant_id, fields, row.id)
    version = _write_version(row, fields, ready, actor)
    _move(row, state, version)
    facts = {
        "number": version.number,
        "digest": version.digest,
        "version": label(version.number, version.digest),
    }
    _record("published", row, actor, facts)
    return primitive_row(row)


@transaction.atomic
def disable(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Serve it no more, until it is enabled or published again."""
    row = _locked(primitive_id)
    _move(row, _next_state(row, Verb.DISABLE), row.live)
    _record("disabled", row, actor, {"version": str(row.live)})
    return primitive_row(row)


@transaction.atomic
def enable(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Serve the version that was published last, whatever the working copy holds by now."""
    row = _locked(primitive_id)
    state = _next_state(row, Verb.ENABLE)
    function = row.live.function if row.live else ""
    if refused := validation.check_grant(row.tenant_id, function):
        raise Invalid({f"config.{kinds.GRANTED_BY_STAFF[row.kind]}": refused})
    _move(row, state, row.live)
    _record("enabled", row, actor, {"version": str(row.live)})
    return primitive_row(row)


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

    What the tenant made of it stays as it is, and is not served while the function is not granted.
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


def _locked(primitive_id: UUID) -> Primitive:
    """The row, held until the transaction ends, so that its state and its count do not move."""
    rows = Primitive.objects.select_for_update(of=("self",)).select_related("tenant", "live")
    row = rows.filter(pk=primitive_id, tenant__closed_at=None).first()
    if row is None:
        raise UnknownError("entry of the catalogue", primitive_id)
    return row


def _next_state(row: Primitive, verb: Verb) -> State:
    state = following(State(row.state), verb)
    if state is None:
        raise WrongStateError(row.name, State(row.state), verb)
    return state


def _check_fixed(row: Primitive, names: list[str]) -> None:
    problems = {}
    if "name" in names and row.live_id:
        problems["name"] = [_FIXED]
    for name in {"sort", "kind"}.intersection(names):
        problems[name] = [f"The {name} of a {row.sort} stays. Make a new one instead."]
    if problems:
        raise Invalid(problems)


def _store(row: Primitive, fields: PrimitiveFields, ready: Ready) -> None:
    for name in fields.__dataclass_fields__:
        setattr(row, name, getattr(fields, name))
    row.uri = ready.compiled.uri or None
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        # Somebody else took the name, or the URI, between the check and here.
        raise Invalid({"name": [validation.taken("name", fields.sort)]}) from None


def _write_version(
    row: Primitive, fields: PrimitiveFields, ready: Ready, actor: Actor
) -> PrimitiveVersion:
    last = row.versions.aggregate(last=Max("number"))["last"] or 0
    return PrimitiveVersion.objects.create(
        primitive=row,
        number=last + 1,
        digest=ready.digest,
        function=kinds.function_of(fields.kind, fields.config),
        snapshot=snapshot(fields),
        code=code(ready.compiled),
        published_by=(actor.label or actor.kind)[:200],
    )


def _move(row: Primitive, state: State, live: PrimitiveVersion | None) -> None:
    row.state, row.live = state, live
    row.save(update_fields=["state", "live", "updated_at"])


def _record(verb: str, row: Primitive, actor: Actor, facts: Mapping[str, Any]) -> None:
    action = f"{row.sort}.{verb}"
    audit.record(action, actor=actor, tenant=row.tenant_id, target=row.name, facts=facts)
    _announce(Sort(row.sort), row.tenant_id, str(row.id))


def _record_grant(action: str, tenant_id: UUID, function: str, actor: Actor) -> None:
    audit.record(action, actor=actor, tenant=tenant_id, target=function, facts={})
    _announce(kinds.sort_of(function), tenant_id, function)


def _announce(sort: Sort, tenant_id: UUID, object_id: str) -> None:
    announce(_NEWS.get(sort, sort.value), tenant=tenant_id, object_id=object_id)
