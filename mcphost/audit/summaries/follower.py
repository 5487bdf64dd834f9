"""Follow the record: project calls soon after their entries were committed. One process at a time does.

All state is in one row (`Following`), which also is the lock under which rows are written. The
lease says which process looks each second; it saves work, and correctness does not depend on it.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import OperationalError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from mcphost.audit.models import CallSummary, Following
from mcphost.audit.open_calls import Losses, losses
from mcphost.audit.selectors import SKEW, first_id
from mcphost.audit.summaries import batches, changed_calls, counting, rollups
from mcphost.audit.summaries.batches import AT_ONCE, CallBatch
from mcphost.audit.summaries.bulk_sql import SQLITE, run, vendor
from mcphost.audit.summaries.rollups import Resolution

LEASE: Final = timedelta(seconds=15)
"""After how long without a look another process takes over."""
PRUNE_EVERY: Final = timedelta(minutes=10)
PRUNED_PORTIONS: Final = 20
"""How many portions of old roll-ups one pass deletes; the next one goes on."""
DUE_AT_ONCE: Final = 1_000
READ_AT_ONCE: Final = 100
"""How many calls a reader writes at most."""
LOCK_TIMEOUT: Final = "500ms"
"""How long a reader waits for another process that writes, on PostgreSQL. Far longer than one batch takes."""
FOLD_EVERY: Final = timedelta(seconds=5)
FEW: Final = 20
KNOWN_FOR: Final = timedelta(seconds=4)
"""How seldom it is written that nothing is new."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FollowerStep:
    """What one step did: how many rows it wrote, and whether there is more to do at once.

    `current`: all entries that were new are part of the summaries. `leads`: this process has the lease.
    """

    written: int = 0
    more: bool = False
    current: bool = False
    leads: bool = False


class Follower:
    """One process's part in following. Methods run in a database thread.

    `pause(seconds)` is called after each transaction with the time since the last pause.
    """

    def __init__(self) -> None:
        self.id = uuid4()
        self._renew_at: datetime | None = None

    def step(self, pause: Any = None) -> FollowerStep:
        """Follow once if the lease is this process's, or free."""
        now = timezone.now()
        if not self._lease(now):
            return FollowerStep()
        return _Pass(pause, renew=self._renew).run(now)

    def release(self) -> None:
        """Let another process take the lease at once."""
        Following.objects.filter(owner=self.id).update(owner=None, leased_until=None)

    def _lease(self, now: datetime) -> bool:
        begin(now)
        free = Q(owner=None) | Q(owner=self.id) | Q(leased_until__lt=now)
        free |= Q(leased_until__gt=now + 2 * LEASE)  # longer than any: by a clock that is ahead
        if Following.objects.filter(owner=self.id, leased_until__gt=now + LEASE / 2).exists():
            return True
        return self._hold(Following.objects.filter(free), now)

    def _renew(self) -> None:
        """Keep the lease in a pass that takes long, mostly because it pauses."""
        now = timezone.now()
        if self._renew_at is None or now >= self._renew_at:
            self._hold(Following.objects.filter(owner=self.id), now)

    def _hold(self, free: QuerySet[Following], now: datetime) -> bool:
        self._renew_at = now + LEASE / 2
        return bool(free.update(owner=self.id, leased_until=now + LEASE))


def begin(now: datetime) -> None:
    """Make the row of `Following`, if there is none: all entries until now are missing."""
    if Following.objects.exists():
        return
    with transaction.atomic():
        end = changed_calls.end()
        Following.objects.bulk_create(
            [
                Following(
                    pk=1,
                    position=end.position,
                    seen=end.snapshot,
                    page=end.page,
                    checked=end.position,
                    checked_seen=end.snapshot,
                    checked_at=now,
                    missing_until=_behind_all(),
                    open_minute=Resolution.MINUTE.bucket(now),
                    open_hour=Resolution.HOUR.bucket(now),
                    open_day=Resolution.DAY.bucket(now),
                )
            ],
            ignore_conflicts=True,
        )


class _PageThread(threading.local):
    """A thread that shows a page. `caught_up_at` is the moment for which it has caught up last."""

    caught_up_at: datetime | None = None


_reader: Final = _PageThread()


def catch_up(now: datetime) -> None:
    """Write what a reader would miss, if it is little.

    So a page that is opened right after a call shows it. What is more is left to the process that follows; also what
    is new while another process writes for longer than a reader waits.
    A page that asks several questions of one moment catches up once.
    """
    if now == _reader.caught_up_at:
        return
    begin(now)
    try:
        with transaction.atomic():
            if vendor() != SQLITE:
                run("SELECT set_config('lock_timeout', %s, true)", LOCK_TIMEOUT)
            following = Following.objects.select_for_update().get()
            _Pass(reading=True, alone=following.leased_until is None).run(now)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
    _reader.caught_up_at = now


def refresh(now: datetime) -> None:
    """Do the work of the follower if no process does it: before anything has started, and in tests."""
    if now == _reader.caught_up_at or Following.objects.filter(leased_until__gt=now).exists():
        return
    catch_up(now)


class _Pass:
    """One pass: what is new, what is due, and a portion of what is missing.

    `reading`: a reader waits for it, so what is more than a little is left out. `alone`: no process follows,
    before anything has started, and in tests.
    """

    def __init__(
        self,
        pause: Any = None,
        renew: Callable[[], None] | None = None,
        *,
        reading: bool = False,
        alone: bool = False,
    ) -> None:
        self._pause = pause
        self._renew = renew
        self._reading = reading
        self._alone = alone
        self._written = 0
        self._begun = time.monotonic()

    def run(self, now: datetime) -> FollowerStep:
        following = Following.objects.get()
        lost = losses()
        behind = self._project_unseen(following, now, lost)
        more = behind
        if not self._reading:
            self._project_recent(following, now, lost)
            more = self._project_lost(following, now, lost) or more
        self._write(self._expired_calls(now), now, lost, again=True)
        if self._alone or not self._reading:
            more = self._project_missing(following, now, lost) or more
        self._fold(following, now)
        if not self._reading:
            self._prune(following, now)
            self._pause_writing()
        return FollowerStep(self._written, more, current=not behind, leads=not self._reading)

    def _project_unseen(self, following: Following, now: datetime, lost: Losses) -> bool:
        unseen_calls = changed_calls.find_calls(following)
        if self._reading and len(unseen_calls.calls) > READ_AT_ONCE:
            return True
        self._write(unseen_calls.calls, now, lost)
        changes: dict[str, Any] = {
            "position": unseen_calls.position,
            "seen": unseen_calls.snapshot,
            "page": unseen_calls.page,
        }
        if unseen_calls.overflows:
            changes.update(self._all_missing(following))
        changed = (
            unseen_calls.calls
            or unseen_calls.overflows
            or unseen_calls.position != following.position
        )
        current_at = following.current_at
        if not unseen_calls.more and (
            changed or current_at is None or now - current_at > KNOWN_FOR
        ):
            changes["current_at"] = now
        if changed or "current_at" in changes:
            self._advance(following, **changes)
        return unseen_calls.more

    def _project_recent(self, following: Following, now: datetime, lost: Losses) -> None:
        if not _is_over(following.checked_at, changed_calls.WIDE_EVERY, now):
            return
        unseen_calls = changed_calls.find_recent_calls(following, now)
        self._write(unseen_calls.calls, now, lost)
        changes = self._all_missing(following) if unseen_calls.overflows else {}
        changes.update(
            checked=unseen_calls.position, checked_seen=unseen_calls.snapshot, checked_at=now
        )
        self._advance(following, **changes)

    def _all_missing(self, following: Following) -> dict[str, Any]:
        """Return the change that lets all entries since the last search count as missing."""
        since = following.current_at
        oldest = None if since is None else first_id(since - SKEW)
        if following.missing_until is not None:  # something is missing already
            missing_from = following.missing_from
            oldest = None if missing_from is None or oldest is None else min(missing_from, oldest)
        log.info("the summaries of calls are behind: reading entries again")
        return {"missing_from": oldest, "missing_until": _behind_all()}

    def _expired_calls(self, now: datetime) -> Collection[str]:
        """Open calls whose time is over, for which there is no entry."""
        due = CallSummary.objects.filter(expires_at__lte=now).order_by("expires_at")
        limit = READ_AT_ONCE if self._reading else DUE_AT_ONCE
        return [call.hex for call in due.values_list("call", flat=True)[:limit]]

    def _project_lost(self, following: Following, now: datetime, lost: Losses) -> bool:
        """Project a portion of the open calls again whose state opens no more, after a key or a salt was
        lost. They are open no more then; return whether there may be others."""
        count = len(lost.keys) + len(lost.tenants)
        if count == following.losses:
            return False
        waiting = CallSummary.objects.filter(expires_at__isnull=False).filter(
            Q(sealed_by__in=list(lost.keys)) | Q(tenant__in=list(lost.tenants))
        )
        first = waiting.order_by("expires_at").values_list("call", flat=True)[:DUE_AT_ONCE]
        calls = [call.hex for call in first]
        self._write(calls, now, lost, again=True)
        if len(calls) == DUE_AT_ONCE:
            return True
        self._advance(following, losses=count)
        return False

    def _project_missing(self, following: Following, now: datetime, lost: Losses) -> bool:
        """Project a portion of the calls that are missing, the newest first."""
        until = following.missing_until
        if until is None:
            return False
        calls, next_until = changed_calls.missing(following)
        self._write(calls, now, lost, late=True)
        # Not if other entries were found to be missing meanwhile.
        same = Following.objects.filter(missing_until=until, missing_from=following.missing_from)
        same.update(
            missing_until=next_until, missing_from=following.missing_from if next_until else None
        )
        return next_until is not None

    def _prune(self, following: Following, now: datetime) -> None:
        if not _is_over(following.pruned_at, PRUNE_EVERY, now):
            return
        for _ in range(PRUNED_PORTIONS):
            if rollups.prune(now) < rollups.PRUNED_AT_ONCE:
                self._advance(following, pruned_at=now)
                return
            self._pause_writing()

    def _write(
        self,
        calls: Collection[str],
        now: datetime,
        lost: Losses,
        *,
        again: bool = False,
        late: bool = False,
    ) -> None:
        for portion in _portions(calls, AT_ONCE):
            self._written += batches.write(CallBatch(portion, again, late), now, lost)
            self._pause_writing()

    def _fold(self, following: Following, now: datetime) -> None:
        """Bring roll-ups up to date: at once while there are few calls; otherwise those of some seconds together."""
        if self._reading:
            while self._alone and counting.fold(now):
                pass
        elif self._written <= FEW or _is_over(following.folded_at, FOLD_EVERY, now):
            while counting.fold(now):
                self._pause_writing()

    def _pause_writing(self) -> None:
        """Pause, after what was done since the last pause."""
        if self._renew is not None:
            self._renew()
        if self._pause is not None:
            self._pause(time.monotonic() - self._begun)
        self._begun = time.monotonic()

    def _advance(self, following: Following, **changes: Any) -> None:
        """Move on, unless another process has done so since."""
        same = {name: getattr(following, name) for name in changes}
        Following.objects.filter(pk=following.pk, **same).update(**changes)
        for name, value in changes.items():
            setattr(following, name, value)


def _is_over(last: datetime | None, wait: timedelta, now: datetime) -> bool:
    """Whether a wait since `last` is over: also if that is yet to come, noted by a clock that was ahead."""
    return last is None or not last <= now < last + wait


def _behind_all() -> UUID:
    """Return a larger id than any entry has, another one each time: so it shows that more is missing than before."""
    return UUID(int=0xFFFF << 112 | uuid4().int >> 16)


def _portions(calls: Collection[str], size: int) -> Iterator[list[str]]:
    remaining = iter(sorted(calls))
    while portion := list(islice(remaining, size)):
        yield portion
