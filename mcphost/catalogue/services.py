"""All changes of the catalogue.

Each verb is one transaction, one entry in the record and one change in the change log.

Raises the errors of `errors`, UnknownTenantError for a tenant that does not exist or is closed, and
PermissionDenied if the actor no longer has the right (`tenants.access`).
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
from mcphost.catalogue.errors import (
    InvalidPrimitiveError,
    NotDeletableError,
    StaleError,
    UnchangedError,
    UnknownError,
    WrongStateError,
)
from mcphost.catalogue.fields import (
    PrimitiveFields,
    changed,
    code,
    fingerprint,
    snapshot,
    working_copy,
)
from mcphost.catalogue.listing import ListingTexts
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.catalogue.ordering import in_order, order_of, property_order
from mcphost.catalogue.rows import PrimitiveRow, primitive_row
from mcphost.catalogue.states import DELETABLE, PrimitiveState, PrimitiveVerb, following
from mcphost.catalogue.validation import Inspected
from mcphost.feed.services import announce
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.access import lock_open_tenant, lock_tenant
from mcphost.tenants.roles import Permission

_FIXED = (
    "It was published, and clients identify it by this, so it cannot be changed. "
    "Create a new one instead."
)
_CHANGE_NAMES = {PrimitiveType.TEMPLATE: "resource"}
"""The change log's name for changes of a type, where it is not the type's name."""


def create(tenant_id: UUID, fields: PrimitiveFields, actor: Actor) -> PrimitiveRow:
    """Create a draft. Blocks while its kind inspects it (`validation.inspect`)."""
    return create_inspected(tenant_id, validation.inspect(tenant_id, fields), actor)


@transaction.atomic
def create_inspected(tenant_id: UUID, inspected: Inspected, actor: Actor) -> PrimitiveRow:
    """Create a draft, also as a part of a larger transaction, before which it was inspected."""
    tenant = lock_open_tenant(tenant_id, actor, Permission.EDIT_TOOLS)
    fields = validation.normalized(inspected)
    ready = validation.check(tenant_id, fields)
    row = Primitive(tenant=tenant)
    _store(row, fields, ready)
    _record("created", row, actor, {"kind": row.kind})
    return primitive_row(row)


def update(
    primitive_id: UUID, fields: PrimitiveFields, actor: Actor, *, based_on: str = ""
) -> PrimitiveRow:
    """Change the working copy. What is served stays as it was published.

    Unchanged fields change nothing: no entry, no announcement. `based_on` is the
    `fields.fingerprint` of the working copy that was edited. Raises StaleError if it has changed
    since; without `based_on` it is replaced whatever it is. Blocks while its kind inspects it
    (`validation.inspect`).
    """
    inspected = validation.inspect(_tenant_id(primitive_id), fields)
    return update_inspected(primitive_id, inspected, actor, based_on=based_on)


@transaction.atomic
def update_inspected(
    primitive_id: UUID, inspected: Inspected, actor: Actor, *, based_on: str = ""
) -> PrimitiveRow:
    """Do the same as `update`, also as a part of a larger transaction, before which it was
    inspected."""
    row = _locked(primitive_id, actor)
    before = working_copy(row)
    fields = validation.normalized(inspected)
    names = changed(before, fields)
    if not names:  # also if the same form is sent twice, which is no conflict
        return primitive_row(row)
    if based_on and based_on != fingerprint(before):
        raise StaleError(row.name)
    problems = {}
    if "name" in names and row.live_id:
        problems["name"] = [_FIXED]
    for name in {"primitive_type", "kind"}.intersection(names):
        label = name.replace("_", " ")
        problems[name] = [
            f"The {label} of a {row.primitive_type} cannot be changed. Create a new one instead."
        ]
    if problems:
        raise InvalidPrimitiveError(problems)
    ready = validation.check(row.tenant_id, fields, row.id)
    if row.live_id and (row.uri or "") != ready.compiled.uri:
        raise InvalidPrimitiveError({validation.uri_field(fields): [_FIXED]})
    _store(row, fields, ready)
    _record("updated", row, actor, {"changed": names})
    return primitive_row(row)


@transaction.atomic
def publish(
    primitive_id: UUID, actor: Actor, *, note: str = "", based_on: str = "", was: str = ""
) -> PrimitiveRow:
    """Write the working copy as the next version, and serve it from now on.

    `note` says why, at most MAX_NOTE characters. `based_on` is the `fields.fingerprint` of the working
    copy that was reviewed, `was` the state that the user saw: raises StaleError if one of them has
    changed since. Raises UnchangedError if the version would be the one that is published already.
    """
    note = validation.normalized_note(note)
    row = _locked(primitive_id, actor)
    state = _next_state(row, PrimitiveVerb.PUBLISH)
    fields = working_copy(row)
    if based_on and based_on != fingerprint(fields):
        raise StaleError(row.name)
    ready = validation.check(row.tenant_id, fields, row.id)
    if refused := outgoing.locked_problems(row.tenant_id, fields.kind, fields.config):
        raise InvalidPrimitiveError(refused)
    digest = working_digest(ready, fields)
    if row.live is not None and row.live.digest == digest and _same_order(row.live, fields):
        raise UnchangedError(row.name, str(row.live), PrimitiveState(row.state))
    _check_state(row, was)
    last = row.versions.aggregate(last=Max("number"))["last"] or 0
    version = new_version(row, last + 1, fields, ready, digest)
    version.note, version.published_by = note, (actor.label or actor.kind)[:200]
    version.save()
    _move(row, state, version)
    facts = {
        "number": version.number,
        "digest": version.digest,
        "version": label(version.number, version.digest),
    }
    if note:
        facts["note"] = note
    _record("published", row, actor, facts)
    return primitive_row(row)


@transaction.atomic
def roll_back(
    primitive_id: UUID,
    version_id: UUID,
    actor: Actor,
    *,
    note: str = "",
    instead_of: str = "",
    was: str = "",
) -> PrimitiveRow:
    """Serve an earlier version again, instead of the one that was published last.

    The working copy stays as it is. Raises UnchangedError for the version that is published.
    `instead_of` is the label of the version that it is to replace, `was` the state that the user saw:
    raises StaleError if another version was published since, or the state is another one.
    """
    note = validation.normalized_note(note)
    row = _locked(primitive_id, actor)
    state = _next_state(row, PrimitiveVerb.PUBLISH)
    version = row.versions.filter(pk=version_id).first()
    if version is None:
        raise UnknownError("version", version_id)
    if row.live_id == version.pk:
        raise UnchangedError(row.name, str(version), PrimitiveState(row.state))
    before = str(row.live)
    if instead_of and instead_of != before:
        raise StaleError(row.name)
    _check_state(row, was)
    _check_servable(row, version)
    _move(row, state, version)
    facts = {"version": str(version), "instead_of": before}
    _record("rolled_back", row, actor, {**facts, "note": note} if note else facts)
    return primitive_row(row)


@transaction.atomic
def disable(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Stop serving a primitive, until it is enabled or published again."""
    return _change_state(_locked(primitive_id, actor), PrimitiveVerb.DISABLE, "disabled", actor)


@transaction.atomic
def enable(primitive_id: UUID, actor: Actor, *, version: str = "") -> PrimitiveRow:
    """Serve the last published version again, whatever the working copy contains.

    `version` is the label of the one that the user saw: raises StaleError if another one was
    published since.
    """
    row = _locked(primitive_id, actor)
    _next_state(row, PrimitiveVerb.ENABLE)  # a wrong state is told before what else is wrong
    if version and version != str(row.live):
        raise StaleError(row.name)
    if row.live is not None:
        _check_servable(row, row.live)
    return _change_state(row, PrimitiveVerb.ENABLE, "enabled", actor)


@transaction.atomic
def archive(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Stop serving a primitive and take it out of the lists, until it is restored."""
    return _change_state(_locked(primitive_id, actor), PrimitiveVerb.ARCHIVE, "archived", actor)


@transaction.atomic
def restore(primitive_id: UUID, actor: Actor) -> PrimitiveRow:
    """Put an archived primitive back into the lists, disabled."""
    return _change_state(_locked(primitive_id, actor), PrimitiveVerb.RESTORE, "restored", actor)


@transaction.atomic
def delete(primitive_id: UUID, actor: Actor) -> None:
    """Delete a draft or an archived primitive, with its versions. Its name can be used again.

    What was recorded of it stays. Raises NotDeletableError in any other state.
    """
    row = _locked(primitive_id, actor)
    if row.state not in DELETABLE:
        raise NotDeletableError(row.name, PrimitiveState(row.state))
    versions = row.versions.count()
    _record("deleted", row, actor, {"kind": row.kind, "versions": versions})
    Primitive.objects.filter(pk=row.pk).update(state=PrimitiveState.DRAFT, live=None)
    row.versions.all().delete()
    row.delete()


@transaction.atomic
def grant_function(tenant_id: UUID, function: str, actor: Actor) -> bool:
    """Let a tenant use a function; return whether that is new. For platform staff.

    Raises InvalidPrimitiveError, on `function`, when the code has no such function.
    """
    tenant = lock_open_tenant(tenant_id, actor, Permission.GRANT_FUNCTIONS)
    if function not in dict(kinds.functions()):
        raise InvalidPrimitiveError(
            {"function": [f"There is no function {function[:200]!r} in the code."]}
        )
    _, new = Grant.objects.get_or_create(tenant=tenant, function=function)
    if new:
        _record_grant("function.granted", tenant_id, function, actor)
    return new


@transaction.atomic
def revoke_grant(tenant_id: UUID, function: str, actor: Actor) -> bool:
    """Revoke a tenant's grant of a function; return whether it had it. For platform staff.

    The tenant's primitives that use it stay as they are, but are not served without the grant.
    """
    lock_tenant(tenant_id, actor, Permission.GRANT_FUNCTIONS)
    count, _ = Grant.objects.filter(tenant=tenant_id, function=function).delete()
    if count:
        _record_grant("function.revoked", tenant_id, function, actor)
    return bool(count)


def new_version(
    row: Primitive, number: int, fields: PrimitiveFields, ready: Ready, digest: str
) -> PrimitiveVersion:
    """Return the version that a publication of these fields writes, unsaved. `digest` is that of
    `working_digest`."""
    return PrimitiveVersion(
        primitive=row,
        number=number,
        digest=digest,
        function=kinds.function_of(fields.kind, fields.config),
        snapshot=snapshot(fields),
        config_order=order_of(fields.config),
        code=code(ready.compiled),
    )


def news_of(primitive_type: PrimitiveType) -> str:
    """Return the change log's name for changes of primitives of a type."""
    return _CHANGE_NAMES.get(primitive_type, primitive_type.value)


def working_digest(ready: Ready, fields: PrimitiveFields) -> str:
    """Return the digest of a publication of these fields (`compiling.publication_digest`)."""
    texts = ListingTexts(
        fields.name, ready.compiled.uri, fields.title, fields.description, fields.icons
    )
    listing = listing_of(ready.compiled, texts)
    return publication_digest(ready, listing, snapshot(fields))


def _same_order(version: PrimitiveVersion, fields: PrimitiveFields) -> bool:
    """Whether a version shows properties in the order of these fields: its digest does not say it."""
    config = in_order(version.snapshot["config"], version.config_order)
    return property_order(config) == property_order(fields.config)


def _change_state(row: Primitive, verb: PrimitiveVerb, done: str, actor: Actor) -> PrimitiveRow:
    """Change the state, keep the published version, and record it as `<type>.<done>`."""
    _move(row, _next_state(row, verb), row.live)
    _record(done, row, actor, {"version": str(row.live)})
    return primitive_row(row)


def _check_state(row: Primitive, was: str) -> None:
    """Refuse to serve what another user has disabled since this user saw its state, `was`."""
    if was and was != row.state:
        raise StaleError(row.name)


def _check_servable(row: Primitive, version: PrimitiveVersion) -> None:
    """Refuse a version whose function, secrets or hosts the tenant may no longer use."""
    if refused := validation.check_grant(row.tenant_id, version.function):
        raise InvalidPrimitiveError({f"config.{kinds.GRANTED_BY_STAFF[row.kind]}": refused})
    if unsendable := outgoing.locked_problems(row.tenant_id, row.kind, version.snapshot["config"]):
        raise InvalidPrimitiveError(unsendable)


def _locked(primitive_id: UUID, actor: Actor) -> Primitive:
    """Return the row, locked until the transaction ends, so that its state and version are stable.

    The tenant is locked first, as in every change of its primitives: one transaction may change
    several. Its version is not joined: after waiting for a lock, PostgreSQL reads the locked row
    again, but not the rows joined to it, so `live` would be the version from before the wait.
    """
    tenant_id = _tenant_id(primitive_id)
    tenant = lock_open_tenant(tenant_id, actor, Permission.EDIT_TOOLS)
    row = Primitive.objects.select_for_update().filter(pk=primitive_id).first()
    if row is None:  # deleted while this waited for the lock
        raise UnknownError("primitive", primitive_id)
    row.tenant = tenant
    return row


def _tenant_id(primitive_id: UUID) -> UUID:
    row = Primitive.objects.filter(pk=primitive_id).only("tenant_id").first()
    if row is None:
        raise UnknownError("primitive", primitive_id)
    return row.tenant_id


def _next_state(row: Primitive, verb: PrimitiveVerb) -> PrimitiveState:
    state = following(PrimitiveState(row.state), verb)
    if state is None:
        raise WrongStateError(row.name, PrimitiveState(row.state), verb)
    return state


def _store(row: Primitive, fields: PrimitiveFields, ready: Ready) -> None:
    for name in fields.__dataclass_fields__:
        setattr(row, name, getattr(fields, name))
    row.config_order = order_of(fields.config)
    row.uri = ready.compiled.uri or None
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        # A concurrent request took the name, or the URI, after the check.
        raise InvalidPrimitiveError(
            {"name": [validation.in_use_message("name", fields.primitive_type)]}
        ) from None


def _move(row: Primitive, state: PrimitiveState, live: PrimitiveVersion | None) -> None:
    row.state, row.live = state, live
    row.save(update_fields=["state", "live", "updated_at"])


def _record(verb: str, row: Primitive, actor: Actor, facts: Mapping[str, Any]) -> None:
    action = f"{row.primitive_type}.{verb}"
    audit.record(action, actor=actor, tenant=row.tenant_id, target=row.name, facts=facts)
    _announce(PrimitiveType(row.primitive_type), row.tenant_id, str(row.id))


def _record_grant(action: str, tenant_id: UUID, function: str, actor: Actor) -> None:
    audit.record(action, actor=actor, tenant=tenant_id, target=function, facts={})
    _announce(kinds.primitive_type_of(function), tenant_id, function)


def _announce(primitive_type: PrimitiveType, tenant_id: UUID, object_id: str) -> None:
    announce(news_of(primitive_type), tenant=tenant_id, object_id=object_id)
