"""The connection log: how far clients come in connecting to a tenant, and where they stop.

There is one row for each step of a client and person, with its last time. What a signed-in person
does is written at once. What anonymous requests show is noted in memory, and written by
housekeeping: at most once a minute for each step of a tenant, and at most MAX_NOTED at a time. So a
stranger neither fills the table nor makes the server write at each request. No token, code or
address is stored.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from mcphost.audit.last_use import LastUse
from mcphost.audit.models import Entry
from mcphost.audit.texts import clean_text
from mcphost.identity.models import Connection, ConnectionStep, OAuthClient, Token
from mcphost.identity.tokens import ParsedToken, parse
from mcphost.tenants.fields import SLUG
from mcphost.tenants.models import Membership, Tenant

MAX_NOTED: Final = 500
"""How many steps of anonymous requests wait to be written in one process."""
MAX_READ: Final = 500
MAX_PER_TENANT: Final = 1_000
KEPT_FOR: Final = timedelta(days=30)
PRUNED_AT_ONCE: Final = 500
MAX_ENTRIES: Final = 2_000
"""How many of a tenant's latest entries are searched for the first call of a connection."""
SEARCH_FOR: Final = timedelta(minutes=3)
"""How long after a connection's use its first call is still searched for."""


class StepKind(StrEnum):
    """A step of connecting, or why one failed. The console's words are in `console.tenants.connection_log`."""

    CHALLENGED = "challenged"  # called without a token, and was told where to sign in
    METADATA = "metadata"  # read where to sign in (the metadata of the resource)
    SERVER_METADATA = (
        "server_metadata"  # read how to sign in (the metadata of the authorization server)
    )
    OPENED = "opened"  # opened the sign-in page
    REGISTERED = "registered"
    DOCUMENT = "document"  # its metadata document was read
    SIGNED_IN = "signed_in"  # the person signed in, and saw the consent page
    REFUSED = "refused"  # the server refused the client or the person
    DECLINED = "declined"  # the person declined
    CONSENTED = "consented"  # the person allowed it
    CODE_REFUSED = "code_refused"
    REDEEMED = "redeemed"
    PRESENTED = "presented"  # presented its token for the first time
    FIRST_CALL = "first_call"
    ENDED = "ended"  # the connection ended
    MALFORMED = "malformed"  # presented something that is no token of this server
    UNKNOWN_TOKEN = "unknown_token"  # noqa: S105 - no secret
    EXPIRED = "expired"
    REVOKED = "revoked"
    INACTIVE = "inactive"  # presented a token whose owner is disabled or gone
    ELSEWHERE = "elsewhere"  # presented a token at another tenant's address


ANONYMOUS: Final = frozenset(
    {
        StepKind.CHALLENGED,
        StepKind.METADATA,
        StepKind.SERVER_METADATA,
        StepKind.OPENED,
        StepKind.MALFORMED,
        StepKind.UNKNOWN_TOKEN,
    }
)
"""The steps of unidentified clients."""


class StepRecord(NamedTuple):
    """One step, to be written."""

    tenant_id: UUID
    step: StepKind
    at: datetime
    user_id: int | None = None
    client: str = ""
    name: str = ""
    detail: str = ""

    @property
    def id(self) -> str:
        key = "\0".join((str(self.tenant_id), str(self.user_id), self.client, self.step))
        return hashlib.sha256(key.encode()).hexdigest()


class ShownStep(NamedTuple):
    """A step that was taken, as shown to users."""

    step: StepKind
    detail: str
    at: datetime


class ConnectionAttempt(NamedTuple):
    """How far one client came for one person: its steps, the last one last.

    `slug` is the tenant's. `person` is empty while it is unknown, and `name` while the client is.
    """

    slug: str
    person: str
    name: str
    steps: tuple[ShownStep, ...]

    @property
    def last(self) -> ShownStep:
        return self.steps[-1]


class AnonymousStep(NamedTuple):
    """What an anonymous request to a tenant's name shows; with the token that it presented."""

    step: StepKind
    slug: str
    token: ParsedToken | None = None


class _NotedSteps(LastUse[AnonymousStep]):
    """The steps of anonymous requests, until they are written."""

    def write(self, uses: Iterable[tuple[AnonymousStep, datetime]]) -> None:
        noted = dict(uses)
        slugs = {step.slug for step in noted}
        tenants = Tenant.objects.filter(slug__in=slugs, closed_at=None)
        ids = dict(tenants.values_list("slug", "pk"))
        token_ids = {step.token.id for step in noted if step.token is not None}
        rows = Token.objects.filter(pk__in=token_ids).select_related(
            "tenant", "owner", "service_account", "connection__client"
        )
        tokens = {row.pk: row for row in rows}
        records = (_record_of(step, at, ids, tokens) for step, at in noted.items())
        write([record for record in records if record is not None])


class _ConnectionUse(LastUse[str]):
    """The last use of connections, and their first steps with a token."""

    def write(self, uses: Iterable[tuple[str, datetime]]) -> None:
        used = dict(uses)
        super().write(used.items())
        if not used:
            return
        records = _first_uses(used)
        write([record for record in records.values() if record is not None])
        # A call that is under way has no entry yet: it is searched for again with the next use.
        now = timezone.now()
        for connection_id, step in records:
            used_at = used[connection_id]
            if records[connection_id, step] is None and now - used_at < SEARCH_FOR:
                super().note(connection_id, used_at + timedelta(microseconds=1))


_noted: Final[LastUse[AnonymousStep]] = _NotedSteps(ConnectionStep)
connection_use: Final[LastUse[str]] = _ConnectionUse(Connection)
"""When connections were last used, by their ids."""


def note(step: StepKind, slug: str) -> None:
    """Note a step of an anonymous request to a name, which may be that of no tenant."""
    if SLUG.fullmatch(slug):
        _noted.note_within(MAX_NOTED, AnonymousStep(step, slug), timezone.now())


def note_refused_token(slug: str, bearer: str | None) -> None:
    """Note that a token was refused at a tenant's endpoint; None for another scheme than Bearer.

    Why is found out when it is written: no look-up is made for the request.
    """
    parsed = None if bearer is None else parse(bearer)
    step = StepKind.MALFORMED if parsed is None else StepKind.UNKNOWN_TOKEN
    if SLUG.fullmatch(slug):
        _noted.note_within(MAX_NOTED, AnonymousStep(step, slug, parsed), timezone.now())


def of_person(
    membership: Membership, client: OAuthClient, step: StepKind, detail: str = ""
) -> StepRecord:
    """Return a step of a client for a member, taken now."""
    return StepRecord(
        membership.tenant_id,
        step,
        timezone.now(),
        membership.user_id,
        client.pk,
        client.name,
        detail,
    )


def arrival(membership: Membership, client: OAuthClient) -> list[StepRecord]:
    """Return the steps by which a client has come to a member who is signed in."""
    signed_in = of_person(membership, client, StepKind.SIGNED_IN)
    registered = of_person(
        membership,
        client,
        StepKind.DOCUMENT if client.has_document else StepKind.REGISTERED,
    )
    registered_at = client.read_at if client.has_document else client.created_at
    return [registered._replace(at=registered_at or registered.at), signed_in]


def write(records: Iterable[StepRecord]) -> None:
    """Write steps; a step taken again replaces the former time."""
    rows = {
        record.id: ConnectionStep(
            id=record.id,
            tenant_id=record.tenant_id,
            user_id=record.user_id,
            client=record.client,
            name=clean_text(record.name)[:200],
            step=record.step.value,
            detail=clean_text(record.detail),
            at=record.at,
        )
        for record in records
    }
    ConnectionStep.objects.bulk_create(
        # In one order, so that two processes do not deadlock.
        [rows[id] for id in sorted(rows)],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["name", "detail", "at"],
    )


def attempts(tenant_id: UUID, user_id: int | None = None) -> tuple[ConnectionAttempt, ...]:
    """Return how far clients came in a tenant, the newest first; with `user_id`, those of one person."""
    rows = ConnectionStep.objects.filter(tenant_id=tenant_id)
    return _grouped(rows if user_id is None else rows.filter(user_id=user_id))


def attempts_of(user_id: int) -> tuple[ConnectionAttempt, ...]:
    """Return how far clients came for a person in the tenants of their own, the newest first."""
    memberships = Membership.objects.filter(user_id=user_id, tenant__closed_at=None)
    own = ConnectionStep.objects.filter(user_id=user_id, tenant__in=memberships.values("tenant"))
    return _grouped(own)


def _grouped(rows: QuerySet[ConnectionStep]) -> tuple[ConnectionAttempt, ...]:
    # During an upgrade another process may write steps that this one does not know.
    known_rows = rows.filter(step__in=list(StepKind)).select_related("user", "tenant")
    groups: dict[tuple[UUID, int | None, str], list[ConnectionStep]] = {}
    for row in known_rows[:MAX_READ]:
        groups.setdefault((row.tenant_id, row.user_id, row.client), []).append(row)
    return tuple(
        ConnectionAttempt(
            newest.tenant.slug,
            "" if newest.user is None else newest.user.get_username(),
            next((row.name for row in rows_of_client if row.name), ""),
            tuple(
                ShownStep(StepKind(row.step), row.detail, row.at)
                for row in _in_order(rows_of_client)
            ),
        )
        for rows_of_client in groups.values()
        for newest in rows_of_client[:1]
    )


def forget(tenant_id: UUID, client_id: str) -> None:
    """Delete the steps of a client that was made for a trial."""
    ConnectionStep.objects.filter(tenant_id=tenant_id, client=client_id).delete()


@transaction.atomic
def prune() -> int:
    """Delete up to PRUNED_AT_ONCE steps that are old, or too many of one tenant; return how many."""
    rows = ConnectionStep.objects.order_by("at")
    old = rows.filter(at__lt=timezone.now() - KEPT_FOR)
    ids = list(old.values_list("pk", flat=True)[:PRUNED_AT_ONCE])
    kept = rows.exclude(pk__in=ids)
    counts = kept.order_by().values_list("tenant").annotate(steps=Count("pk"))
    for tenant_id, steps in counts.filter(steps__gt=MAX_PER_TENANT):
        surplus = max(0, min(steps - MAX_PER_TENANT, PRUNED_AT_ONCE - len(ids)))
        ids += kept.filter(tenant=tenant_id).values_list("pk", flat=True)[:surplus]
    ConnectionStep.objects.filter(pk__in=ids).delete()
    return len(ids)


_ORDER: Final = {step: number for number, step in enumerate(StepKind)}


def _in_order(rows: Iterable[ConnectionStep]) -> list[ConnectionStep]:
    """Sort steps by time; those of one moment in the order in which clients take them."""
    return sorted(rows, key=lambda row: (row.at, _ORDER[StepKind(row.step)]))


def _record_of(
    noted: AnonymousStep, at: datetime, tenants: Mapping[str, UUID], tokens: Mapping[str, Token]
) -> StepRecord | None:
    """Return what to write of a noted step; None if its tenant does not exist."""
    row = None if noted.token is None else tokens.get(noted.token.id)
    if row is None or noted.token is None or bytes(row.digest) != noted.token.digest:
        tenant_id = tenants.get(noted.slug)
        return None if tenant_id is None else StepRecord(tenant_id, noted.step, at)
    connection = row.connection
    client, name = (
        (row.pk, f"token “{row.name}”")
        if connection is None
        else (connection.client_id, connection.client.name)
    )
    if row.service_account is not None:
        name = f"{name} of {row.service_account}"
    step = _why_refused(row, noted.slug, at)
    return StepRecord(row.tenant_id, step, at, row.owner_id, client, name)


def _why_refused(row: Token, slug: str, at: datetime) -> StepKind:
    """Return why a token was refused at the endpoint of the tenant named `slug`.

    Only the token's own tenant learns of it: to the other one the token is unknown.
    """
    if row.tenant.slug != slug:
        return StepKind.ELSEWHERE
    if row.revoked_at is not None:
        return StepKind.REVOKED
    if row.expires_at is not None and row.expires_at <= at:
        return StepKind.EXPIRED
    return StepKind.INACTIVE


def _first_uses(
    used: Mapping[str, datetime],
) -> dict[tuple[str, StepKind], StepRecord | None]:
    """Return the steps PRESENTED and FIRST_CALL of connections that the log does not have yet, by connection
    id and step; None if the first call is not found."""
    records: dict[tuple[str, StepKind], StepRecord | None] = {}
    live = Connection.objects.filter(pk__in=used, ended_at=None)
    rows = live.select_related("membership", "client")
    candidates = {
        record.id: (connection, record)
        for connection in rows
        for step in (StepKind.FIRST_CALL, StepKind.PRESENTED)
        for record in [of_person(connection.membership, connection.client, step)]
    }
    stored = dict(ConnectionStep.objects.filter(pk__in=candidates).values_list("pk", "at"))
    for id, (connection, record) in candidates.items():
        # An earlier connection of the same client has left its steps.
        if id in stored and stored[id] >= connection.created_at:
            continue
        key = str(connection.pk), record.step
        used_at, call = used[str(connection.pk)], _call_of(connection)
        if record.step is StepKind.PRESENTED:
            records[key] = record._replace(at=used_at if call is None else min(used_at, call.at))
        else:
            records[key] = call and record._replace(at=call.at, detail=call.target)
    return records


class _FirstCall(NamedTuple):
    at: datetime
    target: str


def _call_of(connection: Connection) -> _FirstCall | None:
    """Return the first call of a connection among the last entries of its tenant."""
    entries = Entry.objects.filter(tenant=connection.membership.tenant_id).order_by("-id")
    newest = entries.values_list("call", "token_id", "at", "target")[:MAX_ENTRIES]
    calls = [
        _FirstCall(at, target)
        for call, token_id, at, target in newest
        if call is not None and token_id == str(connection.pk)
    ]
    return calls[-1] if calls else None
