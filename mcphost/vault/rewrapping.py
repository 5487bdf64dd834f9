"""Rewrap all secrets, so that exactly the given master keys open them, and report which keys wrap what.

With a new master key beside the current one, everything is wrapped by both. Once the new one is the
master key, the wrapping by the old one is removed. The secrets themselves do not change, so other
processes need not reload them, and a rewrap can be interrupted at any point and run again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from django.db import models, transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.vault.errors import DamagedSecretError
from mcphost.vault.master import MasterKeys, master_keys
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.services import verify_master_key
from mcphost.vault.wrapping import kek_id, opened, wrapped, wrappers

CHANGE_NAME: Final = "master-key"
"""The name of the change in the change log. Its object id: ids of the master keys, with spaces."""

ROWS_AT_ONCE: Final = 100

_KEY_FIELDS: Final = ("wrapped",)
_TENANT_FIELDS: Final = ("wrapped_salt", "wrapped_payload_key")

Fields = dict[str, str]


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """The result: how many keys, and the secrets of how many tenants, were rewrapped.

    `damaged` are messages about secrets that no key opens; these were not changed.
    """

    keys: int
    tenants: int
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wrapping:
    """The state of the wrapping: ids of the given master keys; how many rows have secrets that are
    not wrapped by exactly those; and ids of other master keys that wrap some."""

    key_ids: tuple[str, ...]
    rows_to_rewrap: int
    other_master_key_ids: tuple[str, ...]


def wrapping() -> Wrapping:
    """Read the state of the wrapping. Raises as `rewrap`."""
    verify_master_key()
    key_ids = frozenset(map(kek_id, master_keys().all()))
    rows_to_rewrap, other_master_key_ids = 0, set[str]()
    rows: Iterator[tuple[models.Model, Iterable[str]]] = chain(
        ((key, _KEY_FIELDS) for key in RingKey.objects.all()),
        ((row, _TENANT_FIELDS) for batch in _batches() for row in batch),
    )
    for row, names in rows:
        wrapper_ids = [wrappers(value) for name in names if (value := getattr(row, name))]
        rows_to_rewrap += any(ids != key_ids for ids in wrapper_ids)
        other_master_key_ids |= frozenset().union(*wrapper_ids) - key_ids
    return Wrapping(tuple(sorted(key_ids)), rows_to_rewrap, tuple(sorted(other_master_key_ids)))


def rewrap(actor: Actor) -> Rewrapped:
    """Rewrap every secret, so that the given master keys open it, and no others.

    Raises MasterKeyMismatchError if there are secrets that none of them opens, and DamagedSecretError if
    a key of the ring is damaged. Then nothing is changed.
    """
    keys = master_keys()
    verify_master_key()
    damaged: list[str] = []
    with transaction.atomic():  # all ring keys at once; only this part is recorded
        ring_keys = list(RingKey.objects.select_for_update())
        ring = _write_fields(
            [(row, _rewrapped_fields(row, _KEY_FIELDS, keys, damaged)) for row in ring_keys]
        )
        if ring:
            names = " ".join(sorted(map(kek_id, keys.all())))
            record("key.rewrapped", actor=actor, target=names, facts={"keys": ring})
            announce(CHANGE_NAME, object_id=names)
    tenants = 0
    for rows in _batches():
        anew = [(row, _rewrapped_fields(row, _TENANT_FIELDS, keys, damaged)) for row in rows]
        tenants += _write_fields(anew)
    return Rewrapped(ring, tenants, tuple(damaged))


def _batches() -> Iterator[Sequence[TenantSecret]]:
    """All tenants' secrets in batches, so that transactions are short."""
    every = TenantSecret.objects.order_by("tenant")
    rows: Sequence[TenantSecret] = list(every[:ROWS_AT_ONCE])
    while rows:
        yield rows
        rows = list(every.filter(tenant__gt=rows[-1].tenant)[:ROWS_AT_ONCE])


def _rewrapped_fields(
    row: models.Model, names: Iterable[str], keys: MasterKeys, damaged: list[str]
) -> Fields:
    """The new values of the fields to rewrap. Adds messages about damaged ones to `damaged`."""
    key_ids = frozenset(map(kek_id, keys.all()))
    fields: Fields = {}
    for name in names:
        if (value := getattr(row, name)) and wrappers(value) != key_ids:
            try:
                fields[name] = wrapped(opened(row, name, keys), row, name, keys)
            except DamagedSecretError as error:
                damaged.append(str(error))
    return fields


@transaction.atomic
def _write_fields(anew: Sequence[tuple[models.Model, Fields]]) -> int:
    """Write by compare-and-set, so that a secret destroyed meanwhile is not restored."""
    done = 0
    for row, fields in anew:
        rows = type(row)._default_manager.filter(pk=row.pk)
        written = [
            rows.filter(**{name: getattr(row, name)}).update(**{name: value})
            for name, value in fields.items()
        ]
        done += any(written)
    return done
