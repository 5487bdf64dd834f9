"""Going on with calls of sessions whose process has died, or has let them go.

Housekeeping looks for them every few seconds; whoever takes an answer to one, or is asked to show its
stream, need not wait for that.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Final
from uuid import UUID

from mcphost.audit.records import new_id
from mcphost.calls import sessions, streamed
from mcphost.calls.states import CallState
from mcphost.calls.streamed import Adopted, Batch, SupersededError
from mcphost.feed.loop import ChangeNews
from mcphost.feed.nodes import heartbeat
from mcphost.identity import selectors as identity
from mcphost.identity.selectors import anonymous
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal
from mcphost.serving import authority, drain, replies
from mcphost.serving.incoming import Incoming
from mcphost.serving.legacy import asking, keeping, requests
from mcphost.serving.legacy.calls import SessionCall
from mcphost.serving.legacy.holding import Holding, place_of
from mcphost.serving.legacy.keeping import Kept
from mcphost.serving.legacy.sessions import principal_in
from mcphost.serving.patience import patiently
from mcphost.serving.relay import Relay
from mcphost.tenants import selectors as tenants

ENDED: Final = "the client ended the session"
CALLED_OFF: Final = "the client cancelled the request"

log = logging.getLogger(__name__)


class TenantGone(Exception):  # noqa: N818 - a refusal that says what happened
    """There is no such tenant any more."""


def look() -> None:
    """Take what nobody has. In a thread that may wait for the database."""
    if not drain.draining():
        for call in streamed.orphans(heartbeat.id):
            _found.put(call)


def heard(news: ChangeNews) -> None:
    """A process has let a call go. From the feed's thread."""
    if not drain.draining():
        _found.put(UUID(news.object_id))


def attach() -> None:
    """Go on with calls on the running loop."""
    _found.attach()


async def adopt(**which: UUID) -> None:
    """Take calls that nobody has, if there are: `which` says of whom by columns of theirs.

    Whoever asks for it may go away meanwhile: what was taken is gone on with all the same.
    """
    if drain.draining():
        return
    if found := await patiently(streamed.orphans, heartbeat.id, **which):
        task = asyncio.get_running_loop().create_task(_adopt_all(found), context=Context())
        _adopting.add(task)
        task.add_done_callback(_adopting.discard)
        await asyncio.shield(task)


async def _adopt_all(found: Sequence[UUID]) -> None:
    for call in found:
        if drain.draining():  # others take the rest, and need not wait for it
            return
        adopted = await patiently(streamed.adopt, call, heartbeat.id)
        if adopted is not None:
            log.warning("a call is taken over", extra={"call": str(call)})
            await _go_on(adopted)


async def _go_on(adopted: Adopted) -> None:
    """Go on with it, or end it: nobody else looks after what is this process's."""
    try:
        await _take_up(adopted)
    except Exception:
        log.exception("a call cannot go on", extra={"call": str(adopted.call.id)})
        end = Batch((), keeping.PICK_UP)
        with suppress(SupersededError):
            await patiently(
                streamed.finish, adopted.taking, adopted.stream, end, CallState.CANCELLED
            )


async def _take_up(adopted: Adopted) -> None:
    """Raises SealError, VaultError, TenantGone: what could not be otherwise the next time."""
    stream = adopted.stream
    tenant = await patiently(tenants.tenant, stream.tenant)
    if tenant is None:
        raise TenantGone
    written = await patiently(
        keeping.unseal, stream.tenant, adopted.call.id.bytes, adopted.call.request
    )
    incoming = requests.read(written, tenant)
    incoming = incoming._replace(leg=new_id())  # what runs here is told apart from what ran there
    now = await _present(incoming)
    ended = await patiently(sessions.find, stream.session, stream.tenant) is None
    pick_up = partial(_pick_up, adopted, incoming.principal, now, ended)
    if now is not None:
        incoming = incoming._replace(principal=now)
    SessionCall(incoming, _kept(adopted, incoming, written), pick_up, last=adopted.last)


def _kept(adopted: Adopted, incoming: Incoming, written: bytes) -> Kept:
    assert incoming.session is not None
    polling = REVISIONS[incoming.session.revision].polling
    name = adopted.call.request_name
    return Kept(adopted.taking, adopted.stream, name, lambda: written, polling)


async def _present(incoming: Incoming) -> Principal | None:
    """Who made the call, with the rights that it has now."""
    token, session = incoming.principal.token_id, incoming.session
    assert session is not None
    if token is not None:
        return (await patiently(identity.standing, [token])).get(token)
    now = anonymous(incoming.tenant)
    return None if now is None else principal_in(session, now)


async def _pick_up(
    adopted: Adopted, before: Principal, now: Principal | None, ended: bool, holding: Holding
) -> None:
    """Have the call stand where it stood. Raises ProtocolError for one that may not go on, and
    CancelledError for one that was called off."""
    tenant, call = adopted.stream.tenant, adopted.call.id
    if adopted.journal and adopted.state is not CallState.RUNNING:
        holding.wait(await patiently(asking.pause_of, adopted.stream, call, adopted.journal))
    if ended or adopted.state is CallState.CANCELLED:
        raise asyncio.CancelledError(ENDED if ended else CALLED_OFF)
    refusal = authority.refusal(before, now)
    if refusal is not None:
        raise refusal
    if holding.waiting is not None:
        return
    if adopted.reply:
        place = place_of(call, adopted.round)
        holding.reply = replies.read(await patiently(keeping.unseal, tenant, place, adopted.reply))
    elif adopted.journal:
        holding.go_on(await patiently(asking.resumed, tenant, call, adopted.journal), begun=True)
    else:
        holding.uncertain = True


_found: Final[Relay[UUID]] = Relay(_adopt_all)
_adopting: Final[set["asyncio.Task[None]"]] = set()
"""What is being taken, for somebody who may have gone."""
