"""Verify recorded payloads against the commitments of their entries, a portion at a time.

One pass reads all entries, the oldest first. It finds payloads that were changed, exchanged, deleted or
emptied outside the platform. An entry's columns have no commitment: changes of them are not found. An
entry that was committed long after its id was made is verified by the next pass.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from mcphost.audit.models import Entry, Payload, Verification
from mcphost.audit.ports import (
    ModifiedPayloadError,
    PayloadCipher,
    SealedPayload,
    UnreadablePayloadError,
    payload_cipher,
)
from mcphost.audit.selectors import first_id
from mcphost.audit.services import PAYLOAD_ERASED

PASS_EVERY: Final = timedelta(hours=1)
SETTLED: Final = timedelta(minutes=1)
"""The age from which entries are verified: younger ones may be about to be committed."""
SECONDS: Final = 0.05
"""How long one run may take, but for its last portion."""
_ENTRIES: Final = 100
_PAYLOADS: Final = 20
_START: Final = UUID(int=0)

log = logging.getLogger(__name__)


class _Committed(NamedTuple):
    """What an entry says about its payload."""

    entry: UUID
    tenant: UUID | None
    commitment: bytes


@dataclass(frozen=True, slots=True)
class VerificationState:
    """How far verification is. `payloads` were verified by the last pass that ended, at `ended_at`.

    `read_at` is when a portion was last read. `wrong` payloads are not what was recorded; the first belongs
    to the entry `first_wrong`.
    """

    payloads: int
    ended_at: datetime | None
    read_at: datetime
    wrong: int
    first_wrong: UUID | None


def state() -> VerificationState | None:
    """How far verification is; None before it has begun. One query."""
    row = Verification.objects.first()
    if row is None:
        return None
    return VerificationState(
        row.all_payloads, row.ended_at, row.read_at, row.wrong, row.first_wrong
    )


def run(now: datetime, clock: Callable[[], float] = time.monotonic) -> None:
    """Verify some portions of the pass, or begin the next one when it is time. In a database thread.

    Two processes that do so at once verify a portion twice and count it once.
    """
    cipher = payload_cipher()
    row = _begun(now)
    if cipher is None or row is None:
        return
    ends, until = clock() + SECONDS, first_id(now - SETTLED)
    while True:
        entries = Entry.objects.filter(id__gt=row.position, id__lt=until).order_by("id")
        found = list(entries.values_list("id", "tenant", "commitment")[:_ENTRIES])
        if not found:
            _end(row, now)
            return
        committed = [_Committed(id, of, bytes(made)) for id, of, made in found if made is not None]
        wrong = [each for some in _chunks(committed) for each in _wrong(cipher, some)]
        changes = _counted(row, len(committed), wrong)
        if not _advance(row, position=found[-1][0], read_at=now, **changes) or clock() >= ends:
            return


def _begun(now: datetime) -> Verification | None:
    """Return the pass that has begun; None if it is not time for the next."""
    row = Verification.objects.first()
    if row is None:
        return Verification.objects.get_or_create(pk=1, defaults={"begun_at": now, "read_at": now})[
            0
        ]
    if row.ended_at is None or row.ended_at < row.begun_at:
        return row
    if now < row.begun_at + PASS_EVERY:
        return None
    again = {"position": _START, "begun_at": now, "payloads": 0, "wrong_now": 0}
    return row if _advance(row, **again) else None


def _counted(row: Verification, payloads: int, wrong: Sequence[UUID]) -> dict[str, Any]:
    changes: dict[str, Any] = {"payloads": row.payloads + payloads}
    if wrong:
        log.error("%d payloads are not what was recorded; the first: %s", len(wrong), wrong[0])
        count = row.wrong_now + len(wrong)
        changes |= {"wrong_now": count, "wrong": max(count, row.wrong)}
        if not row.wrong_now:
            changes["first_wrong"] = wrong[0]
    return changes


def _end(row: Verification, now: datetime) -> None:
    found = {"wrong": row.wrong_now, "first_wrong": row.first_wrong if row.wrong_now else None}
    _advance(row, ended_at=now, read_at=now, all_payloads=row.payloads, **found)


def _advance(row: Verification, **changes: Any) -> bool:
    """Change the row unless another process has done so; whether it was changed."""
    same = Verification.objects.filter(pk=row.pk, position=row.position, begun_at=row.begun_at)
    if not same.filter(ended_at=row.ended_at).update(**changes):
        return False
    for name, value in changes.items():
        setattr(row, name, value)
    return True


def _chunks(committed: Sequence[_Committed]) -> Iterator[Sequence[_Committed]]:
    """A few at a time: a payload may have megabytes."""
    for start in range(0, len(committed), _PAYLOADS):
        yield committed[start : start + _PAYLOADS]


def _wrong(cipher: PayloadCipher, committed: Sequence[_Committed]) -> Iterator[UUID]:
    """Yield the entries whose payload is not what was recorded."""
    rows = Payload.objects.in_bulk([each.entry for each in committed])
    erased = _recorded_as_erased([str(id) for id, row in rows.items() if row.erased_at])
    for each in committed:
        row = rows.get(each.entry)
        if row is None or row.tenant != each.tenant:
            yield each.entry
        elif row.erased_at is not None:
            if str(each.entry) not in erased:
                yield each.entry
        elif not _is_as_recorded(cipher, each, row):
            yield each.entry


def _recorded_as_erased(entries: Sequence[str]) -> frozenset[str]:
    """Return those of the entries whose payload a user has erased, by the audit log."""
    if not entries:
        return frozenset()
    erasures = Entry.objects.filter(action=PAYLOAD_ERASED, call=None, target__in=entries)
    return frozenset(erasures.values_list("target", flat=True))


def _is_as_recorded(cipher: PayloadCipher, committed: _Committed, row: Payload) -> bool:
    """Whether a payload matches its commitment. One whose key is gone cannot be verified, and counts as such."""
    sealed = SealedPayload(committed.commitment, row.key_id, bytes(row.ciphertext))
    try:
        cipher.verify(row.tenant, sealed)
    except ModifiedPayloadError:
        return False
    except UnreadablePayloadError:
        return True
    return True
