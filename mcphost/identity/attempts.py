"""Count attempts at passwords in the database, before any password is hashed.

An attempt counts under three keys: user name and address, address alone, user name alone. Each key
has a fixed window, which begins with its first attempt and is timed by the database's clock. All
processes share the rows. `reserve` counts an attempt under all keys or under none; only
`Attempt.give_back` takes it out again, and nothing clears what others have counted.

- A user name at one address is locked after FAILURES attempts.
- An address is locked after ADDRESS_FAILURES attempts, over all user names.
- A user name alone is never locked: that would let an attacker lock out its owner. From
  NAME_FAILURES attempts on, an address that has failed at this name has to pause between its
  attempts, longer the more there are; an address that has not failed is not delayed.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from mcphost.identity.models import SignInAttempts

FAILURES: Final = 8
ADDRESS_FAILURES: Final = 40
NAME_FAILURES: Final = 16
WINDOW: Final = timedelta(minutes=15)
FIRST_PAUSE_SECONDS: Final = 2
MAX_PAUSE_SECONDS: Final = 300
PAUSE_DOUBLES_AFTER: Final = 8
NETWORK_BITS: Final = 64
"""The prefix of IPv6 addresses that count as one: a customer can use any address in it."""
MAX_NAME: Final = 150
"""Characters of a user name; a longer one belongs to no user and is cut before it is normalized."""
PRUNED_AT_ONCE: Final = 500
_SALT: Final = "mcphost.identity.attempts"


class Unchecked(StrEnum):
    """Why a password is not checked now."""

    LOCKED = "locked"
    PAUSED = "paused"
    BUSY = "busy"


class NotCheckedError(Exception):
    """The password was not checked; `seconds` say when to try again."""

    def __init__(self, reason: Unchecked, seconds: int) -> None:
        super().__init__(f"{reason}: try again in {seconds} s")
        self.reason = reason
        self.seconds = seconds


class Tally(NamedTuple):
    """Attempts under one key before the current one; `last` is the time of the last of them."""

    earlier: int = 0
    last: datetime | None = None
    until: datetime | None = None


_NONE = Tally()


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of an attempt: digests of user name and address, of the address, of the name."""

    pair: str
    address: str
    name: str

    @classmethod
    def of(cls, name: str, address: str) -> "Keys":
        """Return the same keys for all spellings of a name and all IPv6 addresses of a network."""
        folded = unicodedata.normalize("NFKC", name[:MAX_NAME]).casefold()
        client = network(address)
        return cls(
            _digest("pair", folded, client), _digest("address", client), _digest("name", folded)
        )

    def sorted(self) -> tuple[str, ...]:
        """Return the keys in the order in which all processes lock the rows."""
        return tuple(sorted((self.pair, self.address, self.name)))


@dataclass(frozen=True, slots=True)
class Attempt:
    """A counted attempt, with the tallies before it and the ends of the windows."""

    keys: Keys
    pair: Tally
    address: Tally
    name: Tally

    @transaction.atomic
    def give_back(self) -> None:
        """Subtract this attempt, and no other, from the counts; not from those of later windows."""
        until = {
            self.keys.pair: self.pair.until,
            self.keys.address: self.address.until,
            self.keys.name: self.name.until,
        }
        for key in self.keys.sorted():
            if (ends := until[key]) is not None:
                # One second of tolerance for SQLite's time format; a later window ends much later.
                rows = SignInAttempts.objects.filter(id=key, count__gt=0)
                rows.filter(expires_at__lt=ends + timedelta(seconds=1)).update(count=F("count") - 1)


def check_only(keys: Keys) -> None:
    """Refuse what `reserve` would refuse, without writing: a locked attacker costs one query.

    Raises NotCheckedError. If it does not, `reserve` still decides.
    """
    open_windows = SignInAttempts.objects.filter(
        id__in=keys.sorted(), count__gt=0, expires_at__gt=Now()
    )
    rows = list(open_windows.annotate(now=Now()))
    tallies = {row.id: Tally(row.count, row.last_at, row.expires_at) for row in rows}
    if rows:
        _judge(_attempt(keys, tallies), rows[0].now)


def reserve(keys: Keys) -> Attempt:
    """Count an attempt, in a transaction of its own, before its password is hashed.

    Raises NotCheckedError; then nothing was counted.
    """
    with transaction.atomic():
        _add_to_counts(keys.sorted(), WINDOW)
        # The rows are locked until the commit, so they are as this attempt left them.
        rows = SignInAttempts.objects.in_bulk(keys.sorted())
        attempt = _attempt(
            keys,
            {
                key: Tally(row.count - 1, row.previous_at, row.expires_at)
                for key, row in rows.items()
            },
        )
        _judge(attempt, rows[keys.pair].last_at)
    return attempt


def count_event(event: str, limit: int, window: timedelta) -> int:
    """Count an event that is not a password attempt, under its own key.

    Returns its number within the window, from 1 on; 0 beyond the limit.
    """
    key = _digest("other", event)
    with transaction.atomic():
        _add_to_counts((key,), window)
        number = SignInAttempts.objects.values_list("count", flat=True).get(id=key)
    return number if number <= limit else 0


def pause_seconds(failures: int) -> int:
    """Return the pause of an address that failed at a name, after so many attempts at the name."""
    if failures < NAME_FAILURES:
        return 0
    doubled = min((failures - NAME_FAILURES) // PAUSE_DOUBLES_AFTER, 16)
    return min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS << doubled)


@transaction.atomic
def prune() -> int:
    """Delete up to PRUNED_AT_ONCE rows whose window is over; return how many."""
    over = SignInAttempts.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    # An attempt that has locked a row begins a new window there; waiting for it could deadlock.
    unlocked = over.select_for_update(skip_locked=True)
    keys = list(unlocked.values_list("id", flat=True)[:PRUNED_AT_ONCE])
    SignInAttempts.objects.filter(id__in=keys).delete()
    return len(keys)


def _attempt(keys: Keys, tallies: Mapping[str, Tally]) -> Attempt:
    pair, address, name = (tallies.get(key, _NONE) for key in (keys.pair, keys.address, keys.name))
    return Attempt(keys, pair, address, name)


def _judge(attempt: Attempt, now: datetime) -> None:
    locked = [
        tally.until
        for tally, limit in ((attempt.pair, FAILURES), (attempt.address, ADDRESS_FAILURES))
        if tally.earlier >= limit and tally.until is not None
    ]
    if locked:
        raise NotCheckedError(Unchecked.LOCKED, _seconds(max(locked) - now))
    # Times are compared only for a pause: an attempt that waited for a row has its starting time.
    pause, last = pause_seconds(attempt.name.earlier), attempt.pair.last
    if pause and last is not None:
        remaining = last + timedelta(seconds=pause) - now
        if remaining > timedelta(0):
            raise NotCheckedError(Unchecked.PAUSED, _seconds(remaining))


def _seconds(remaining: timedelta) -> int:
    return max(1, -(-remaining // timedelta(seconds=1)))


def _digest(kind: str, *values: str) -> str:
    text = "\0".join((kind, *values))
    return salted_hmac(_SALT, text, algorithm="sha256").hexdigest()


def network(address: str) -> str:
    """Return the address or IPv6 network that is counted.

    A text that is no address (a Unix socket has none) is returned as it is.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), NETWORK_BITS), strict=False))


_NOW: Final = {
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
    "postgresql": "statement_timestamp()",
}
_LATER: Final = {
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s || ' seconds')",
    "postgresql": "statement_timestamp() + %s * interval '1 second'",
}
_OVER: Final = "held.count = 0 OR held.expires_at <= excluded.last_at"


def _add_to_counts(keys: Iterable[str], window: timedelta) -> None:
    """Add one to the count of each key, in this order; without an open window, start a new one."""
    connection = connections[DEFAULT_DB_ALIAS]
    rows = [(key, window.total_seconds()) for key in keys]
    row = f"(%s, 1, {_NOW[connection.vendor]}, NULL, {_LATER[connection.vendor]})"
    statement = (
        "INSERT INTO identity_sign_in_attempts AS held "  # noqa: S608 - constants
        f"(id, count, last_at, previous_at, expires_at) VALUES {', '.join([row] * len(rows))} "
        "ON CONFLICT (id) DO UPDATE SET "
        f"count = CASE WHEN {_OVER} THEN 1 ELSE held.count + 1 END, "
        f"previous_at = CASE WHEN {_OVER} THEN NULL ELSE held.last_at END, "
        f"expires_at = CASE WHEN {_OVER} THEN excluded.expires_at ELSE held.expires_at END, "
        "last_at = excluded.last_at"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for pair in rows for value in pair])
