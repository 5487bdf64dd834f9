"""Check users' passwords: few at once, each counted before it is hashed, failures recorded."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, TypeVar

from django.contrib.auth.models import User
from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.identity import attempts
from mcphost.identity.attempts import Keys, NotCheckedError, Unchecked
from mcphost.observability import counters

AT_ONCE: Final = 2
"""Passwords that a process hashes at once: each takes a core for a third of a second or more."""
WAITING: Final = 4
WAIT_SECONDS: Final = 2.0
RETRY_BUSY_SECONDS: Final = 5
FAILED: Final = "signin.failed"
LOCKED: Final = "signin.locked"
SLOWED: Final = "signin.slowed"
RECORDED: Final = 60
"""The most entries of each action within RECORDED_WITHIN, of all processes together."""
RECORDED_WITHIN: Final = timedelta(hours=1)

T = TypeVar("T")


class HashingSlots:
    """So many slots for hashing; `waiting` more callers can wait for one, up to WAIT_SECONDS."""

    def __init__(self, at_once: int = AT_ONCE, waiting: int = WAITING) -> None:
        self._hashing = threading.BoundedSemaphore(at_once)
        self._present = threading.BoundedSemaphore(at_once + waiting)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot. Raises NotCheckedError (BUSY) if there is none."""
        if not self._present.acquire(blocking=False):
            raise NotCheckedError(Unchecked.BUSY, RETRY_BUSY_SECONDS)
        try:
            if not self._hashing.acquire(timeout=WAIT_SECONDS):
                raise NotCheckedError(Unchecked.BUSY, RETRY_BUSY_SECONDS)
            try:
                yield
            finally:
                self._hashing.release()
        finally:
            self._present.release()


_slots = HashingSlots()


def check(name: str, address: str, verify: Callable[[], T]) -> T:
    """Return the result of `verify` for the password of the user `name`: falsy if it is wrong.

    The attempt is counted before `verify` hashes anything. A right password subtracts its own
    attempt from the counts and nothing else; if `verify` raises, the attempt stays counted. Raises
    NotCheckedError, and then `verify` was not called.
    """
    keys = Keys.of(name, address)
    try:
        attempts.check_only(keys)
        with _slots.slot():
            attempt = attempts.reserve(keys)
            verified = verify()
    except NotCheckedError as refusal:
        counters.passwords.add(str(refusal.reason))
        raise
    counters.passwords.add("right" if verified else "wrong")
    if verified:
        attempt.give_back()
        return verified
    # Recorded are the first failure of a window and those that reach a limit.
    of_pair, of_address, of_name = attempt.pair, attempt.address, attempt.name
    if of_pair.earlier == 0:
        _record(FAILED, name, address, 1)
    if of_pair.earlier + 1 == attempts.FAILURES:
        _record(LOCKED, name, address, attempts.FAILURES)
    if of_address.earlier + 1 == attempts.ADDRESS_FAILURES:
        _record(LOCKED, "", address, attempts.ADDRESS_FAILURES)
    if of_name.earlier + 1 == attempts.NAME_FAILURES:
        _record(SLOWED, name, address, attempts.NAME_FAILURES)
    return verified


@transaction.atomic
def _record(action: str, name: str, address: str, count: int) -> None:
    """Write one entry, unless there were RECORDED of its action in the last hour.

    The last of them says that more are not recorded. A name is written only if it is a user's,
    because people type passwords into that field.
    """
    number = attempts.count_event(action, RECORDED, RECORDED_WITHIN)
    if not number:
        return
    facts: dict[str, object] = {"attempts": count}
    # Cut as for the counts: SQLite refuses to compare texts of 50,000 bytes and more.
    same = User.objects.filter(username__iexact=name[: attempts.MAX_NAME])
    user = same.only("pk", "username").first() if name else None
    if name:
        facts["user"] = user.get_username() if user else "an unknown name"
    if number == RECORDED:
        facts["unrecorded"] = "more of these within the hour are not recorded"
    record(
        action,
        actor=Actor("anonymous", "", address),
        target=str(user.pk) if user else "",
        facts=facts,
    )
