"""Links of calls: pages on which a person confirms something, and callbacks of machines.

A link is `/t/<tenant>/done/<link>` or `/t/<tenant>/callback/<link>`. The last part is the tenant's
id, a dot, and a sealed token with the link's content. So a link is verified without looking up the
tenant in its path, and invalid links disclose nothing about tenants. The two kinds are not
interchangeable: a machine's callback never counts as a person's confirmation.
"""

import asyncio
import logging
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import orjson
from django.core.exceptions import PermissionDenied
from django.db import Error, transaction
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit import selectors as records
from mcphost.audit.records import QUESTION_ASKED, Actor
from mcphost.audit.timeline import CANCELLED, Timeline
from mcphost.calls import links, session_calls
from mcphost.calls.links import Link
from mcphost.catalogue import selectors as catalogue
from mcphost.protocol import messages
from mcphost.protocol.legacy.questions import elicitation_id
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Call, Delivery, PrincipalKind
from mcphost.runtime.ports import NO_USER, LinkRefusedError
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving.context import Incoming
from mcphost.serving.database import in_database
from mcphost.serving.events import waiters
from mcphost.serving.options import options
from mcphost.serving.ports import EventStream
from mcphost.tasks import listing as tasks
from mcphost.tenants import selectors as tenants
from mcphost.tenants.access import is_active_member, lock_open_tenant
from mcphost.tenants.errors import UnknownTenantError
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.vault import sealer
from mcphost.vault.errors import VaultError

PAGE: Final = "done"
CALLBACK: Final = "callback"

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TENANT = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
"""16 bytes in base64url. Only these four last characters have no bits to spare: each link has one spelling."""
_MAX_NAME = 60
"""How many characters of a client's name and of a target are sealed into a link."""

log = logging.getLogger(__name__)


class LinkContent(NamedTuple):
    """The content of a link's token. Times are in whole seconds since 1970.

    `user_id` is the account that can confirm it, 0 for a callback. `client` is the client's name,
    `target` the target of the call.
    """

    kind: str
    call: str
    key: str
    expires_at: int
    user_id: int = 0
    client: str = ""
    target: str = ""


class LateConfirmationError(Exception):
    """The call of a link has ended, or its time to answer is over: a confirmation would do nothing."""


class Confirmation(NamedTuple):
    """What a page asks its user to confirm. `confirmed`: this was done before; `ended`: the call no longer waits.

    `title` is that of the target, empty if it is no longer served. `message` is the text of the input request
    that sent the user here, empty if the record of it has no payload. `expires_at` is the end of the time to
    answer; of the link while the call does not wait for an answer.
    """

    tenant: TenantSnapshot
    key: str
    target: str
    client: str
    expires_at: datetime
    confirmed: bool
    ended: bool
    title: str = ""
    message: str = ""


class CallLinks:
    """Implements `runtime.ports.Links` for one round of a call."""

    __slots__ = ("_call", "_incoming", "_stream")

    def __init__(self, incoming: Incoming, call: Call, stream: EventStream) -> None:
        self._incoming = incoming
        self._call = call
        self._stream = stream

    def page(self, key: str) -> str:
        principal = self._call.principal
        if principal.user_id is None:
            raise LinkRefusedError(NO_USER)
        call = self._call
        client, target = call.client.name[:_MAX_NAME], call.target[:_MAX_NAME]
        return self._address(PAGE, key, principal.user_id, client, target)

    def callback(self, key: str) -> str:
        return self._address(CALLBACK, key)

    async def wait(self, key: str, seconds: float, pages: Collection[str]) -> bool:
        link = self._link(key)
        if self._stream.closed:
            raise LinkRefusedError("The client is disconnected: there is nothing to wait for.")
        try:
            done = await _wait(link, min(seconds, _life()))
        except Error as error:
            log.error("waiting for a link ended: %s", type(error).__name__)
            raise LinkRefusedError("The state of the link cannot be read at the moment.") from None
        if done and self._names_elicitations:
            for page in pages:
                params = {"elicitationId": elicitation_id(page)}
                self._stream.send(
                    messages.notification("notifications/elicitation/complete", params)
                )
        return done

    @property
    def _names_elicitations(self) -> bool:
        """Whether the client's revision has ids and completion notifications for URL mode
        elicitation (2025-11-25: client/elicitation, "Completion Notifications for URL Mode")."""
        revision = REVISIONS.get(self._call.revision)
        return self._call.delivery is not Delivery.TASK and revision is not None and revision.urls

    def _address(
        self, kind: str, key: str, user_id: int = 0, client: str = "", target: str = ""
    ) -> str:
        link = self._link(key)
        base = _base(self._incoming)
        until = timezone.now() + timedelta(seconds=_life())
        sealed = LinkContent(
            kind, link.call.hex, link.key, int(until.timestamp()), user_id, client, target
        )
        return f"{base}/t/{self._incoming.tenant.slug}/{kind}/{_seal(link.tenant, sealed)}"

    def _link(self, key: str) -> Link:
        if self._call.principal.kind is PrincipalKind.ANONYMOUS:
            raise LinkRefusedError("Anonymous callers get no links: they cannot be told apart.")
        if not _KEY.fullmatch(key):
            raise LinkRefusedError("The key of a link is 1 to 64 letters, digits and `_.-`.")
        return Link(self._call.tenant, self._call.id, key)


async def _wait(link: Link, seconds: float) -> bool:
    with waiters.expecting((link.tenant, link.name)) as waiter:
        try:
            async with asyncio.timeout(seconds):
                while not await in_database(links.is_open, link):
                    await waiter.wait()
        except TimeoutError:
            return await in_database(links.is_open, link)
    return True


async def warm(tenant: UUID) -> None:
    """Load the tenant's sealing keys. If that fails, `_seal` raises LinkRefusedError later."""
    if not sealer.is_warm(tenant):
        with suppress(VaultError, Error):
            await in_database(sealer.warm, tenant)


def confirmation(slug: str, token: str, user_id: int, now: datetime) -> Confirmation | None:
    """What the account `user_id` is asked to confirm; None for a link that is not theirs.

    Reads the database, and changes nothing.
    """
    opened_link = _open_page_link(slug, token, user_id, now)
    if opened_link is None:
        return None
    tenant, sealed = opened_link
    offering, target = catalogue.offering(tenant.id), sealed.target
    primitive = offering.tools_by_name.get(target) or offering.prompts_by_name.get(target)
    timeline = _timeline(tenant, sealed, now)
    waits_until = None if timeline is None else timeline.expires_at
    return Confirmation(
        tenant,
        sealed.key,
        sealed.target,
        sealed.client,
        waits_until or datetime.fromtimestamp(sealed.expires_at, UTC),
        links.is_open(_link_of(tenant, sealed)),
        _has_ended(tenant, sealed, timeline),
        "" if primitive is None else str(primitive.listing.get("title", "")),
        _message(tenant.id, UUID(sealed.call), token),
    )


def _message(tenant: UUID, call: UUID, token: str) -> str:
    """The text of the call's latest input request whose URL leads to this link; of several in one round all texts.

    The user of the link is the caller, whose client was sent this text: reading it is no access to a record.
    """
    requests = [
        entry
        for entry in records.call_entries(call, frozenset({tenant}))
        if entry.action == QUESTION_ASKED
    ]
    for number in sorted({entry.round or 0 for entry in requests}, reverse=True):
        of_round = [entry.id for entry in requests if (entry.round or 0) == number]
        contents = (payload.content for payload in records.payloads(of_round, tenant).values())
        questions = [
            content.get("question") or {} for content in contents if isinstance(content, dict)
        ]
        texts = [params["message"] for params in questions if token in params.get("url", "")]
        if texts:
            return "\n".join(dict.fromkeys(texts))
    return ""


def confirm(slug: str, token: str, user_id: int, label: str, now: datetime) -> bool:
    """Confirm a link and wake the waiting round. False for a link that is not the user's.

    A second confirmation does nothing. Raises LateConfirmationError if there was none before the call ended.
    """
    opened_link = _open_page_link(slug, token, user_id, now)
    if opened_link is None:
        return False
    tenant, sealed = opened_link
    link, until = _link_of(tenant, sealed), datetime.fromtimestamp(sealed.expires_at, UTC)
    timeline = _timeline(tenant, sealed, now)
    if _has_ended(tenant, sealed, timeline) and not links.is_open(link):
        raise LateConfirmationError
    try:
        confirm_link(link, Actor.person(user_id, label), until, now)
    except (PermissionDenied, UnknownTenantError):  # the membership ended meanwhile
        return False
    return True


@transaction.atomic
def confirm_link(link: Link, actor: Actor, expires_at: datetime, now: datetime) -> bool:
    """As `calls.links.confirm`, if the actor is still a member of the link's tenant.

    Raises PermissionDenied, and UnknownTenantError if the tenant is closed.
    """
    lock_open_tenant(link.tenant, actor, None)
    if not is_active_member(int(actor.id), link.tenant):
        raise PermissionDenied
    return links.confirm(link, actor, expires_at, now)


def call_back(slug: str, token: str, source: str, now: datetime) -> bool:
    """Accept a machine's POST from the address `source` to a callback. False for any other link."""
    opened_link = _open_link(CALLBACK, slug, token, now)
    if opened_link is None:
        return False
    tenant, sealed = opened_link
    until = datetime.fromtimestamp(sealed.expires_at, UTC)
    links.call_back(_link_of(tenant, sealed), source, until, now)
    return True


def _open_page_link(
    slug: str, token: str, user_id: int, now: datetime
) -> tuple[TenantSnapshot, LinkContent] | None:
    """The tenant and content of a page link, if it is this user's and the user is still a member
    (2025-11-25: client/elicitation, "Identifying the User")."""
    opened_link = _open_link(PAGE, slug, token, now)
    if opened_link is None or opened_link[1].user_id != user_id:
        return None
    return opened_link if is_active_member(user_id, opened_link[0].id) else None


def _open_link(
    kind: str, slug: str, token: str, now: datetime
) -> tuple[TenantSnapshot, LinkContent] | None:
    owner, dot, sealed_token = token.partition(".")
    if not dot or not _TENANT.fullmatch(owner):
        return None
    tenant_id = UUID(bytes=urlsafe_b64decode(owner + "=="))
    try:
        payload = orjson.loads(sealer.unseal(Purpose.LINK, tenant_id, sealed_token))
        sealed = LinkContent(*payload)
    except (SealError, TypeError):  # TypeError: a link of an older format
        return None
    tenant = tenants.tenant(tenant_id)
    if tenant is None or not tenant.open or tenant.slug != slug:
        return None
    good = sealed.kind == kind and sealed.expires_at > now.timestamp()
    return (tenant, sealed) if good else None


def _timeline(tenant: TenantSnapshot, sealed: LinkContent, now: datetime) -> Timeline | None:
    """The timeline of the link's call; None while nothing of it is recorded."""
    return call_list.call(UUID(sealed.call), frozenset({tenant.id}), now)


def _has_ended(tenant: TenantSnapshot, sealed: LinkContent, timeline: Timeline | None) -> bool:
    """Whether the link's call waits for nothing. A task says so itself: its rounds may be retried."""
    call = UUID(sealed.call)
    task = tasks.of_call(call, tenant.id)
    if task is not None:
        return not task.works
    if timeline is None or timeline.has_ended:
        return timeline is not None
    # After a cancelled round no client continues a call of a session, but a process may take it over.
    of_session = timeline.entries[-1].delivery == Delivery.LEGACY
    return of_session and timeline.state == CANCELLED and not session_calls.is_open(call)


def _link_of(tenant: TenantSnapshot, sealed: LinkContent) -> Link:
    return Link(tenant.id, UUID(sealed.call), sealed.key)


def _seal(tenant: UUID, sealed: LinkContent) -> str:
    keys = sealer.cached(tenant)
    if keys is None:
        raise LinkRefusedError("No link can be made at the moment; try again soon.")
    owner = urlsafe_b64encode(tenant.bytes).rstrip(b"=").decode()
    return f"{owner}.{keys.seal(Purpose.LINK, orjson.dumps(list(sealed)))}"


def _life() -> float:
    """How long a link is valid, in seconds: its key is not kept for longer."""
    return options().longest_answer_seconds


def _base(incoming: Incoming) -> str:
    """The base URL of this server. The guard has checked the Host, unless any host is allowed."""
    if options().public_url:
        return options().public_url
    host = incoming.headers.get("host")
    if not host or options().any_host:
        raise LinkRefusedError("This server does not know its own address: set MCPHOST_PUBLIC_URL.")
    return f"{options().scheme}://{host}"
