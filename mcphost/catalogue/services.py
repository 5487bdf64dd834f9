"""All changes of the catalogue.

Each verb is one transaction, one entry in the record and one change in the change log. The caller
decides who may use it (`tenants.access`).

Raises errors.Invalid, errors.WrongStateError, errors.UnchangedError and errors.UnknownError.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max

from mcphost.audit import services as audit
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, outgoing, validation
from mcphost.catalogue.compiling import Ready, label, listing_of, publication_digest
from mcphost.catalogue.errors import Invalid, UnchangedError, UnknownError, WrongStateError
from mcphost.catalogue.fields import PrimitiveFields, changed, code, snapshot, working_copy
from mcphost.catalogue.listing import ListingTexts
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.catalogue.rows import PrimitiveRow, primitive_row
from mcphost.catalogue.states import PrimitiveState, PrimitiveVerb, following
from mcphost.feed.services import announce
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant

_FIXED = (
    "It was published, and clients identify it by this, so it cannot be changed. "
    "Create a new one instead."
)
_NEWS = {PrimitiveType.TEMPLATE: "resource"}
"""The change log's name for changes of a type, where it is not the type's name."""


def create(tenant_id: UUID, fields: PrimitiveFields, actor: Actor) -> PrimitiveRow:
    """Create a draft."""
    validation.inspect(fields)
    return _create(tenant_id, fields, actor)


@transaction.atomic
def _create(tenant_id: UUID, fields: PrimitiveFields, actor: Actor) -> PrimitiveRow:
    tenant = _tenant(tenant_id)
    fields = validation.normal(fields)
    ready = validation.check(tenant_id, fields)
    row = Primitive(tenant=tenant)
    _store(row, fields, ready)
    _record("created", row, actor, {"kind": row.kind})
    return primitive_row(row)


def update(primitive_id: UUID, fields: PrimitiveFields, actor: Actor) -> PrimitiveRow:
    """Change the working copy. What is served stays as it was published.

    Unchanged fields change nothing: no entry, no announcement.
    """
    validation.inspect(fields)
    return _update(primitive_id, fields, actor)


@transaction.atomic
def _update(primitive_id: UUID, fields: PrimitiveFields, actor: Actor) -> PrimitiveRow:
    row = _locked(primitive_id)
    before = working_copy(row)
    fields = validation.normal(fields)
    names = changed(before, fields)
    if not names:
        return primitive_row(row)
    problems = {}
    if "name" in names and row.live_id:
        problems["name"] = [_FIXED]
    for name in {"sort", "kind"}.intersection(names):
        problems[name] = [
            f"The {name} of a {row.sort} cannot be changed. Create a new one instead."
        ]
    if problems:
        raise Invalid(problems)
    ready = validation.check(row.tenant_id, fields, row.id)
    if row.live_id and (row.uri or "") != ready.compiled.uri:
        raise Invalid({validation.uri_field(fields): [_FIXED]})
    _store(row, fields, ready)
    _record("updated", row, actor, {"changed": names})
    return primitive_row(row)


@transaction.atomic
def publish(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Write the working copy as the next version, and serve it from now on.

    Raises UnchangedError if that would be the version that was published last.
    """
    row = _locked(primitive_id)
    state = _next_state(row, PrimitiveVerb.PUBLISH)
    fields = working_copy(row)
    ready = validation.check(row.tenant_id, fields, row.id)
    if refused := outgoing.problems(row.tenant_id, fields.kind, fields.config):
        raise Invalid(refused)
    digest = working_digest(ready, fields)
    if row.live is not None and row.live.digest == digest:
        raise UnchangedError(row.name, str(row.live), PrimitiveState(row.state))
    last = row.versions.aggregate(last=Max("number"))["last"] or 0
    version = PrimitiveVersion.objects.create(
        primitive=row,
        number=last + 1,
        digest=digest,
        function=kinds.function_of(fields.kind, fields.config),
        snapshot=snapshot(fields),
        code=code(ready.compiled),
        published_by=(actor.label or actor.kind)[:200],
    )
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
    """Stop serving a primitive, until it is enabled or published again."""
    row = _locked(primitive_id)
    _move(row, _next_state(row, PrimitiveVerb.DISABLE), row.live)
    _record("disabled", row, actor, {"version": str(row.live)})
    return primitive_row(row)


@transaction.atomic
def enable(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Serve the last published version again, whatever the working copy contains."""
    row = _locked(primitive_id)
    state = _next_state(row, PrimitiveVerb.ENABLE)
    function = row.live.function if row.live else ""
    if refused := validation.check_grant(row.tenant_id, function):
        raise Invalid({f"config.{kinds.GRANTED_BY_STAFF[row.kind]}": refused})
    live = row.live.snapshot if row.live else {}
    if unsendable := outgoing.problems(row.tenant_id, row.kind, live.get("config", {})):
        raise Invalid(unsendable)
    _move(row, state, row.live)
    _record("enabled", row, actor, {"version": str(row.live)})
    return primitive_row(row)


@transaction.atomic
def grant_function(tenant_id: UUID, function: str, actor: Actor) -> bool:
    """Let a tenant use a function; return whether that is new. For platform staff.

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
    """Revoke a tenant's grant of a function; return whether it had it. For platform staff.

    The tenant's primitives that use it stay as they are, but are not served without the grant.
    """
    count, _ = Grant.objects.filter(tenant=tenant_id, function=function).delete()
    if count:
        _record_grant("function.revoked", tenant_id, function, actor)
    return bool(count)


def working_digest(ready: Ready, fields: PrimitiveFields) -> str:
    """Return the digest of a publication of these fields (`compiling.publication_digest`)."""
    texts = ListingTexts(
        fields.name, ready.compiled.uri, fields.title, fields.description, fields.icons
    )
    listing = listing_of(ready.compiled, texts)
    return publication_digest(ready, listing, snapshot(fields))


def _tenant(tenant_id: UUID) -> Tenant:
    tenant = Tenant.objects.open().filter(pk=tenant_id).first()
    if tenant is None:
        raise UnknownError("tenant", tenant_id)
    return tenant


def _locked(primitive_id: UUID) -> Primitive:
    """Return the row, locked until the transaction ends, so that its state and version are stable.

    Its version is not joined: after waiting for a lock, PostgreSQL reads the locked row again, but
    not the rows joined to it, so `live` would be the version from before the wait.
    """
    rows = Primitive.objects.select_for_update(of=("self",)).select_related("tenant")
    row = rows.filter(pk=primitive_id, tenant__closed_at=None).first()
    if row is None:
        raise UnknownError("primitive", primitive_id)
    return row


def _next_state(row: Primitive, verb: PrimitiveVerb) -> PrimitiveState:
    state = following(PrimitiveState(row.state), verb)
    if state is None:
        raise WrongStateError(row.name, PrimitiveState(row.state), verb)
    return state


def _store(row: Primitive, fields: PrimitiveFields, ready: Ready) -> None:
    for name in fields.__dataclass_fields__:
        setattr(row, name, getattr(fields, name))
    row.uri = ready.compiled.uri or None
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        # A concurrent request took the name, or the URI, after the check.
        raise Invalid({"name": [validation.taken("name", fields.sort)]}) from None


def _move(row: Primitive, state: PrimitiveState, live: PrimitiveVersion | None) -> None:
    row.state, row.live = state, live
    row.save(update_fields=["state", "live", "updated_at"])


def _record(verb: str, row: Primitive, actor: Actor, facts: Mapping[str, Any]) -> None:
    action = f"{row.sort}.{verb}"
    audit.record(action, actor=actor, tenant=row.tenant_id, target=row.name, facts=facts)
    _announce(PrimitiveType(row.sort), row.tenant_id, str(row.id))


def _record_grant(action: str, tenant_id: UUID, function: str, actor: Actor) -> None:
    audit.record(action, actor=actor, tenant=tenant_id, target=function, facts={})
    _announce(kinds.primitive_type_of(function), tenant_id, function)


def _announce(sort: PrimitiveType, tenant_id: UUID, object_id: str) -> None:
    announce(_NEWS.get(sort, sort.value), tenant=tenant_id, object_id=object_id)
