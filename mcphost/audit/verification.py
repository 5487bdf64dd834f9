"""Verify recorded payloads against the commitments of their entries, a portion at a time.

One pass reads the entries that were there when it began, the oldest first. It finds payloads that were
changed, exchanged, deleted, emptied or put back outside the platform, and those that no key opens any more.
It cannot find what changes entries too: a changed column, a deleted entry or commitment, an erasure that
was made up. An entry that was committed long after its id was made is verified by the next pass.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Q, TextField
from django.db.models.functions import Cast, Length

from mcphost.audit.entries import stored_bytes
from mcphost.audit.models import Entry, Payload, Verification
from mcphost.audit.ports import (
    PayloadCipher,
    SealedPayload,
    UnreadablePayloadError,
    payload_cipher,
)
from mcphost.audit.selectors import first_id, time_of
from mcphost.audit.services import PAYLOAD_ERASED

PASS_EVERY: Final = timedelta(hours=1)
SETTLED: Final = timedelta(minutes=1)
"""The age from which entries are verified: younger ones may be about to be committed."""
SECONDS: Final = 0.05
"""After how long a run begins no further payloads. However slow the database is, it verifies some."""
_ENTRIES: Final = 100
_BYTES: Final = 1 << 22
"""Payloads are read together up to so many bytes; a larger one is read alone."""
_START: Final = UUID(int=0)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VerificationState:
    """How far verification is. `payloads` were verified by the last pass that ended, at `ended_at`, and
    `payloads_now` by the present one; 0 between two passes.

    `read_at` is when a portion was last read, `reached` the time of the entries that the present pass has come
    to; None between two passes. `wrong` payloads are not what was recorded; the first belongs
    to the entry `first_wrong`.
    """

    payloads: int
    payloads_now: int
    ended_at: datetime | None
    read_at: datetime
    wrong: int
    first_wrong: UUID | None
    reached: datetime | None = None


class _Committed(NamedTuple):
    """An entry that has a commitment, and the size of its payload: 0 if it is erased, None without one."""

    entry: UUID
    tenant: str | None
    commitment: bytes
    size: int | None


class _Stored(NamedTuple):
    """A payload's row, of which any column may have been changed to anything that the database stores."""

    entry: UUID
    tenant: str
    key_id: str
    ciphertext: object
    erased: bool


_TENANT: Final = Cast("tenant", TextField())
"""The tenant as the database stores it, also if that is no UUID."""
_ERASED: Final = ExpressionWrapper(Q(erased_at__isnull=False), BooleanField())


def state() -> VerificationState | None:
    """How far verification is; None before it has begun. One query."""
    row = Verification.objects.first()
    if row is None:
        return None
    ended = _has_ended(row)
    return VerificationState(
        row.all_payloads,
        0 if ended else row.payloads,
        row.ended_at,
        row.read_at,
        row.wrong,
        row.first_wrong,
        None if ended or row.position == _START else time_of(row.position),
    )


def run(now: datetime, clock: Callable[[], float] = time.monotonic) -> None:
    """Verify some portions of the pass, or begin the next one when it is time. In a database thread.

    Two processes that do so at once verify the same portions, and count them once.
    """
    cipher = payload_cipher()
    row = _begin_pass(now)
    if cipher is None or row is None:
        return
    portions = _Portions(cipher, row.position, first_id(row.begun_at - SETTLED))
    ends = clock() + SECONDS
    while not portions.ended and (clock() < ends or portions.position == row.position):
        portions.verify_next()
    changes = _count_portions(row, portions)
    if portions.ended:
        wrong = changes["wrong_now"]
        changes |= {"ended_at": now, "all_payloads": changes["payloads"], "wrong": wrong}
        if not wrong:
            changes["first_wrong"] = None
    _advance(row, position=portions.position, read_at=now, **changes)


def _has_ended(row: Verification) -> bool:
    return row.ended_at is not None and row.ended_at >= row.begun_at


def _begin_pass(now: datetime) -> Verification | None:
    """Return the pass that has begun; None if it is not time for the next."""
    row = Verification.objects.first()
    if row is None:
        return Verification.objects.get_or_create(pk=1, defaults={"begun_at": now, "read_at": now})[
            0
        ]
    again = {"position": _START, "begun_at": now, "payloads": 0, "wrong_now": 0}
    if max(row.begun_at, row.ended_at or row.begun_at) > now + SETTLED:
        again["ended_at"] = None  # the clock was wrong then: else no pass begins before that time
    elif not _has_ended(row):
        return row
    elif now < row.begun_at + PASS_EVERY:
        return None
    return row if _advance(row, **again) else None


def _count_portions(row: Verification, portions: "_Portions") -> dict[str, Any]:
    wrong = portions.wrong
    count = row.wrong_now + len(wrong)
    changes: dict[str, Any] = {"payloads": row.payloads + portions.payloads, "wrong_now": count}
    if wrong:
        log.error("%d payloads are not what was recorded; the first: %s", len(wrong), wrong[0])
        changes["wrong"] = max(count, row.wrong)
        if not row.wrong_now:
            changes["first_wrong"] = wrong[0]
    return changes


def _advance(row: Verification, **changes: Any) -> bool:
    """Change the row unless another process has done so; whether it was changed."""
    same = Verification.objects.filter(pk=row.pk, position=row.position, begun_at=row.begun_at)
    if not same.filter(ended_at=row.ended_at).update(**changes):
        return False
    for name, value in changes.items():
        setattr(row, name, value)
    return True


@dataclass
class _Portions:
    """What one run verifies: entries after `position`, to below `until`, a few payloads at a time."""

    cipher: PayloadCipher
    position: UUID
    until: UUID
    payloads: int = 0
    wrong: list[UUID] = field(default_factory=list)
    ended: bool = False
    _unverified: list[_Committed] = field(default_factory=list)
    _read_to: UUID = _START

    def verify_next(self) -> None:
        """Verify the next payloads, or find that there are none."""
        if not self._unverified:
            self._read_entries()
            return
        portion = self._take_portion()
        self.payloads += len(portion)
        self.wrong += self._find_wrong(portion)
        self.position = portion[-1].entry if self._unverified else self._read_to

    def _read_entries(self) -> None:
        entries = Entry.objects.filter(id__gt=self.position, id__lt=self.until).order_by("id")
        rows = list(entries.values_list("id", _TENANT, "commitment")[:_ENTRIES])
        if not rows:
            self.ended = True
            return
        committed = [(id, of, made) for id, of, made in rows if made is not None]
        kept = Payload.objects.filter(entry__in=[id for id, _, _ in committed])
        sizes = dict(kept.values_list("entry", Length("ciphertext")))
        self._unverified = [
            _Committed(id, of, stored_bytes(made), sizes.get(id)) for id, of, made in committed
        ]
        self._read_to = rows[-1][0]
        if not self._unverified:
            self.position = self._read_to

    def _take_portion(self) -> Sequence[_Committed]:
        """Take as many as may be in memory together, at least one."""
        size = 0
        for number, committed in enumerate(self._unverified):
            size += committed.size or 0
            if number and size > _BYTES:
                break
        else:
            number = len(self._unverified)
        portion, self._unverified = self._unverified[:number], self._unverified[number:]
        return portion

    def _find_wrong(self, committed: Sequence[_Committed]) -> Iterator[UUID]:
        """Yield the entries whose payload is not what was recorded."""
        kept = Payload.objects.filter(entry__in=[expected.entry for expected in committed])
        stored = kept.values_list("entry", _TENANT, "key_id", "ciphertext", _ERASED)
        rows = {row[0]: _Stored(*row) for row in stored}
        for expected in committed:
            row = rows.get(expected.entry)
            if row is None or row.tenant != expected.tenant or not self._is_right(expected, row):
                yield expected.entry

    def _is_right(self, committed: _Committed, row: _Stored) -> bool:
        recorded = str(row.entry) in self._erased
        if row.erased:
            return not row.ciphertext and (recorded or _is_recorded_as_erased(row.entry))
        if recorded:  # perhaps it was erased after its row was read
            return Payload.objects.filter(entry=row.entry, erased_at__isnull=False).exists()
        sealed = SealedPayload(committed.commitment, row.key_id, stored_bytes(row.ciphertext))
        try:
            self.cipher.verify(UUID(row.tenant), sealed)
        except (UnreadablePayloadError, ValueError):  # ValueError: the tenant is no UUID
            return False
        return True

    @cached_property
    def _erased(self) -> frozenset[str]:
        """The entries whose payloads users have erased, by the audit log. Read once in a run."""
        erasures = Entry.objects.filter(action=PAYLOAD_ERASED, call=None)
        return frozenset(erasures.values_list("target", flat=True))


def _is_recorded_as_erased(entry: UUID) -> bool:
    erasures = Entry.objects.filter(action=PAYLOAD_ERASED, call=None)
    return erasures.filter(target=str(entry)).exists()
