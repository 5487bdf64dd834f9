"""Payloads are verified against the commitments of their entries, in passes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit import services, verification
from mcphost.audit.models import Entry, Payload, Verification
from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.audit.records import Actor
from mcphost.audit.selectors import first_id, time_of
from mcphost.audit.verification import PASS_EVERY, SETTLED, VerificationState

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OLD = NOW - timedelta(days=1)
TENANT = uuid4()
PORTION = 10


@pytest.fixture(autouse=True)
def _small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_ENTRIES", PORTION)
    monkeypatch.setattr(verification, "_BYTES", 1000)


def recorded(many: int = 1, at: datetime = OLD, *, payload: bool = True) -> list[UUID]:
    """Entries with payloads, as the writer writes them."""
    cipher = payload_cipher()
    ids = [UUID(int=first_id(at).int + number) for number in range(many)]
    entries, payloads = [], []
    for id in ids:
        sealed = cipher.commit_and_seal(TENANT, f'"of {id}"'.encode()) if payload else None
        commitment = None if sealed is None else sealed.commitment
        entries.append(
            Entry(
                id=id, at=at, tenant=TENANT, action="a.b", actor_kind="user", commitment=commitment
            )
        )
        if sealed is not None:
            payloads.append(
                Payload(entry=id, tenant=TENANT, key_id=sealed.key_id, ciphertext=sealed.ciphertext)
            )
    Entry.objects.bulk_create(entries)
    Payload.objects.bulk_create(payloads)
    return ids


def run(now: datetime = NOW) -> VerificationState:
    """Run with a clock that stands still: to the end of the pass."""
    verification.run(now, lambda: 0.0)
    found = verification.state()
    assert found is not None
    return found


def change(entry: UUID, **columns: object) -> None:
    """Change a payload as a person with access to the database could."""
    assert Payload.objects.filter(entry=entry).update(**columns) == 1


def test_a_pass_counts_matching_payloads_and_the_next_starts_after_the_interval() -> None:
    assert verification.state() is None
    assert run() == VerificationState(0, 0, NOW, NOW, 0, None), "an empty record"
    later = NOW + PASS_EVERY
    recorded(3)
    recorded(2, OLD + timedelta(seconds=1), payload=False)
    recorded(2, later - SETTLED / 2)  # they may be uncommitted
    assert run(later - timedelta(seconds=1)) == VerificationState(0, 0, NOW, NOW, 0, None)
    assert run(later) == VerificationState(3, 0, later, later, 0, None)
    assert run(later + PASS_EVERY).payloads == 5


def _flipped(entry: UUID) -> bytes:
    sealed = bytearray(Payload.objects.get(entry=entry).ciphertext)
    sealed[-2] ^= 1
    return bytes(sealed)


WAYS = {
    "changed": lambda entry: change(entry, ciphertext=_flipped(entry)),
    "exchanged": lambda entry: change(
        entry, ciphertext=Payload.objects.exclude(entry=entry)[0].ciphertext
    ),
    "of a key that is not there": lambda entry: change(entry, key_id="k0"),
    "of another tenant": lambda entry: change(entry, tenant=uuid4()),
    "deleted": lambda entry: Payload.objects.filter(entry=entry).delete(),
    "emptied": lambda entry: change(entry, ciphertext=b"", erased_at=OLD, erased_by="nobody"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_payload_that_was_changed_in_the_database_is_reported(way, caplog):
    ids = recorded(3)
    WAYS[way](ids[1])
    found = run()
    assert (found.wrong, found.first_wrong) == (1, ids[1])
    assert str(ids[1]) in caplog.text


@pytest.mark.parametrize(
    "back", [None, {"erased_at": None}, {}], ids=["erased", "put back", "full"]
)
def test_an_erased_payload_is_reported_only_if_its_content_is_restored(back):
    ids = recorded(2)
    kept = bytes(Payload.objects.get(entry=ids[0]).ciphertext)
    services.erase_payload(ids[0], Actor.system("a test"))
    if back is not None:
        change(ids[0], ciphertext=kept, **back)
    found = run(timezone.now() + timedelta(hours=2))
    assert (found.wrong, found.first_wrong) == ((0, None) if back is None else (1, ids[0]))


def test_reported_mismatches_remain_until_a_pass_without_any() -> None:
    ids = recorded(2)
    kept = bytes(Payload.objects.get(entry=ids[0]).ciphertext)
    change(ids[0], ciphertext=_flipped(ids[0]))
    assert run().wrong == 1
    change(ids[0], ciphertext=kept)
    change(ids[1], ciphertext=_flipped(ids[1]))
    second = NOW + PASS_EVERY
    assert run(second) == VerificationState(2, 0, second, second, 1, ids[1])
    change(ids[1], ciphertext=kept)
    Payload.objects.filter(entry=ids[1]).delete()
    Entry.objects.filter(id=ids[1])._raw_delete("default")
    third = run(NOW + 2 * PASS_EVERY)
    assert (third.payloads, third.wrong, third.first_wrong) == (1, 0, None)


def test_a_run_stops_at_its_time_limit_and_the_next_run_continues() -> None:
    ids = recorded(2 * PORTION + 5)
    WAYS["deleted"](ids[-1])
    slow = iter([0.0])  # the time is over before the first portion was read
    for portions, clock in ((1, _hurried()), (2, lambda: next(slow, 1.0))):
        verification.run(NOW, clock)
        found = verification.state()
        assert (found.payloads_now, found.ended_at) == (portions * PORTION, None)
        assert found.reached == time_of(ids[portions * PORTION - 1])
    found = run()
    assert found.reached is None
    assert (found.payloads, found.wrong, found.first_wrong) == (len(ids), 1, ids[-1])


def _hurried() -> Callable[[], float]:
    """A clock by which entries are read and verified once, and then the time is over."""
    times = iter([0.0, 0.0, 0.0])
    return lambda: next(times, 1.0)


def test_a_portion_verified_by_two_processes_at_once_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded(PORTION + 5)
    real = verification._advance

    def meanwhile(row: Verification, **changes: object) -> bool:
        monkeypatch.setattr(verification, "_advance", real)
        run()
        return real(row, **changes)

    monkeypatch.setattr(verification, "_advance", meanwhile)
    found = run()
    assert (found.payloads, found.ended_at) == (PORTION + 5, NOW)


def test_a_pass_without_a_cipher_does_not_end() -> None:
    recorded(1)
    set_payload_cipher(None)
    assert run().ended_at is None
