"""Wrapping everything anew, so that exactly the master keys that are given open it.

With a new master key beside the one in use, everything is wrapped by both; once the new one is the
master key, the other's wrapping is taken away. What is wrapped does not change, so no process need
hear of it, and it may be interrupted anywhere and run again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import models, transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.vault.errors import DamagedSecretError
from mcphost.vault.master import MasterKeys, master_keys
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.rows import opened, wrapped
from mcphost.vault.services import verify_master_key
from mcphost.vault.wrapping import kek_id, wrappers

NEWS: Final = "master-key"
"""What the feed calls it; the object are the names of the master keys, with spaces between."""

ROWS_AT_ONCE: Final = 100

_KEY_FIELDS: Final = ("wrapped",)
_TENANT_FIELDS: Final = ("wrapped_salt", "wrapped_payload_key")

Fields = dict[str, str]


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """What was done: how many keys and how many tenants' secrets were wrapped anew.

    `damaged` says of secrets that do not open under any key; they were left as they are.
    """

    keys: int
    tenants: int
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wrapping:
    """How things are wrapped: the names of the master keys that are given, how many rows hold
    secrets that are not wrapped by exactly those, and by which others some are."""

    given: tuple[str, ...]
    left: int
    others: tuple[str, ...]


def wrapping() -> Wrapping:
    """How things stand. Raises as `rewrap`."""
    verify_master_key()
    given = frozenset(map(kek_id, master_keys().all()))
    left, others = 0, set[str]()
    for row, names in _rows():
        found = [wrappers(value) for name in names if (value := getattr(row, name))]
        left += any(each != given for each in found)
        others |= frozenset().union(*found) - given
    return Wrapping(tuple(sorted(given)), left, tuple(sorted(others)))


def rewrap(actor: Actor) -> Rewrapped:
    """Have every secret opened by the master keys that are given, and by no other.

    Raises MasterKeyMismatch if there are secrets that none of them opens, and DamagedSecretError if
    a key of the ring is damaged: then nothing is changed.
    """
    keys = master_keys()
    verify_master_key()
    damaged: list[str] = []
    ring, tenants = _rewrap_ring(keys, actor, damaged), 0
    for rows in _batches():
        anew = [(row, _anew(row, _TENANT_FIELDS, keys, damaged)) for row in rows]
        tenants += _write(anew)
    return Rewrapped(ring, tenants, tuple(damaged))


@transaction.atomic
def _rewrap_ring(keys: MasterKeys, actor: Actor, damaged: list[str]) -> int:
    """All keys at once: the one part that is recorded."""
    rows = list(RingKey.objects.select_for_update())
    done = _write([(row, _anew(row, _KEY_FIELDS, keys, damaged)) for row in rows])
    if done:
        names = sorted(map(kek_id, keys.all()))
        record("key.rewrapped", actor=actor, target=" ".join(names), facts={"keys": done})
        announce(NEWS, object_id=" ".join(names))
    return done


def _batches() -> Iterator[Sequence[TenantSecret]]:
    """Every tenant's secrets, some at a time, so that no transaction lasts."""
    every = TenantSecret.objects.order_by("tenant")
    rows: Sequence[TenantSecret] = list(every[:ROWS_AT_ONCE])
    while rows:
        yield rows
        rows = list(every.filter(tenant__gt=rows[-1].tenant)[:ROWS_AT_ONCE])


def _anew(row: models.Model, names: Iterable[str], keys: MasterKeys, damaged: list[str]) -> Fields:
    """The fields of a row that are to be other than they are; what does not open is put on a list."""
    given = frozenset(map(kek_id, keys.all()))
    fields: Fields = {}
    for name in names:
        if (value := getattr(row, name)) and wrappers(value) != given:
            try:
                fields[name] = wrapped(opened(row, name, keys), row, name, keys)
            except DamagedSecretError as error:
                damaged.append(str(error))
    return fields


@transaction.atomic
def _write(anew: Sequence[tuple[models.Model, Fields]]) -> int:
    """Compare and set: what was destroyed meanwhile does not come back."""
    done = 0
    for row, fields in anew:
        written = [_put(row, name, value) for name, value in fields.items()]
        done += any(written)
    return done


def _put(row: models.Model, name: str, value: str) -> bool:
    same = type(row)._default_manager.filter(pk=row.pk, **{name: getattr(row, name)})
    return bool(same.update(**{name: value}))


def _rows() -> Iterator[tuple[models.Model, Iterable[str]]]:
    for key in RingKey.objects.all():
        yield key, _KEY_FIELDS
    for rows in _batches():
        for row in rows:
            yield row, _TENANT_FIELDS
