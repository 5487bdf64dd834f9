"""The operations on ring keys."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.feed.loop import SILENT_SECONDS
from mcphost.feed.models import Change
from mcphost.sealing.tokens import Purpose, Reason, SealError, key_id
from mcphost.tenants.services import create_tenant
from mcphost.vault import lifecycle, sealer, selectors
from mcphost.vault.errors import KeyRefusalError, VaultError
from mcphost.vault.lifecycle import (
    SLACK,
    STANDBY,
    destroy,
    destroy_salt,
    retire,
    rotate,
    rotate_if_old,
    run_due_transitions,
)
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.services import ensure_ring, ensure_tenant, verify_master_key
from mcphost.vault.states import KeyState, KeyVerb, next_state
from tests.vault.parallel_threads import at_once
from tests.vault.rings import add_key, age, have_expired, have_waited, states

pytestmark = pytest.mark.django_db(transaction=True)

OLGA = Actor.system("olga")


@pytest.fixture
def old() -> str:
    """The first active key."""
    return ensure_ring()


def told(action: str) -> list[tuple[str, str]]:
    """The recorded entries of this action: targets and actors."""
    entries = Entry.objects.filter(action=action).values_list("target", "actor_label")
    return list(entries)


def changes() -> int:
    return Change.objects.filter(name="key", tenant=None).count()


def refused(work: Callable[[], object]) -> bool:
    try:
        work()
    except KeyRefusalError:
        return True
    return False


def test_a_new_key_stays_on_standby_until_every_ready_process_has_polled(old: str) -> None:
    before = changes()
    new = rotate(OLGA)
    assert states() == {old: "active", new: "standby"}
    assert run_due_transitions() == []
    assert states()[new] == "standby"
    assert STANDBY.total_seconds() >= SILENT_SECONDS
    assert told("key.rotated") == [(new, "olga")]
    assert changes() == before + 1
    recent = {"state_since__lte": Now(), "state_since__gt": Now() - timedelta(minutes=1)}
    assert RingKey.objects.filter(pk=new, **recent).exists(), "times are the database's"
    ring = selectors.ring()
    assert ring.active.id == old
    assert set(ring.opening) == {old, new}, "it opens already"
    retire(new, OLGA)  # the rotation is called off
    have_waited(new)
    assert run_due_transitions() == []
    assert selectors.ring().active.id == old
    another = rotate(OLGA)
    assert states()[another] == "standby"


def test_a_due_key_is_promoted_and_the_old_key_still_opens(old: str) -> None:
    tenant = uuid4()
    token = sealer.seal(Purpose.STATE, tenant, b"x")
    new = rotate(OLGA)
    have_waited(new)
    before = changes()
    (said,) = run_due_transitions()
    assert new in said
    assert old in said
    assert states() == {old: "retiring", new: "active"}
    assert RingKey.objects.get(pk=new).activated_at is not None
    assert key_id(sealer.seal(Purpose.STATE, tenant, b"x")) == new
    assert sealer.unseal(Purpose.STATE, tenant, token) == b"x"
    assert told("key.promoted") == [(new, "vault")]
    assert changes() == before + 1


def test_a_promotion_and_a_retirement_happen_once_across_processes(old: str) -> None:
    have_waited(new := rotate(OLGA))
    assert sorted(map(len, at_once(run_due_transitions))) == [0, 0, 0, 1]
    assert states() == {old: "retiring", new: "active"}
    assert told("key.promoted") == [(new, "vault")]
    have_expired(old)
    assert sorted(map(len, at_once(run_due_transitions))) == [0, 0, 0, 1]
    assert len(told("key.retired")) == 1


@pytest.mark.parametrize("compromised", [False, True])
def test_one_of_concurrent_rotations_succeeds_and_the_others_are_refused(
    old: str, compromised: bool
):
    rotation = {"compromised": True, "replaces": old} if compromised else {}
    ends = at_once(lambda: refused(lambda: rotate(OLGA, **rotation)))  # type: ignore[arg-type]
    assert sorted(ends) == [False, True, True, True]
    assert sorted(states().values()) == ["active", "retired" if compromised else "standby"]
    assert states()[old] == ("retired" if compromised else "active")
    assert len(told("key.rotated")) == 1


def test_a_replaced_key_is_retired_when_its_last_token_has_expired(old, settings):
    settings.MCPHOST_MAX_ANSWER_SECONDS = 40
    settings.MCPHOST_CLIENT_SESSION_MAX_SECONDS = 60
    settings.MCPHOST_TASK_SECONDS = 60
    have_waited(rotate(OLGA))
    run_due_transitions()
    age(old, timedelta(seconds=99) + SLACK)
    assert run_due_transitions() == []
    have_expired(old)
    before = changes()
    assert run_due_transitions() == [f"key {old} is retired: its last token has expired"]
    assert states()[old] == "retired"
    assert told("key.retired") == [(old, "vault")]
    assert Entry.objects.get(action="key.retired").facts == {"was": "retiring", "expired": True}
    assert changes() == before + 1


def test_a_compromised_key_opens_nothing_and_its_successor_seals_at_once(old: str) -> None:
    tenant = uuid4()
    token = sealer.seal(Purpose.STATE, tenant, b"x")
    before = changes()
    new = rotate(OLGA, compromised=True)
    assert states() == {old: "retired", new: "active"}
    assert key_id(sealer.seal(Purpose.STATE, tenant, b"x")) == new
    with pytest.raises(SealError) as caught:
        sealer.unseal(Purpose.STATE, tenant, token)
    assert caught.value.reason is Reason.UNKNOWN_KEY
    facts = Entry.objects.get(action="key.rotated").facts
    assert facts == {"replaces": old, "compromised": True, "retired": [old]}
    assert changes() == before + 1


def test_a_compromise_retires_the_active_and_standby_keys_but_not_earlier_ones(old):
    have_waited(second := rotate(OLGA))
    run_due_transitions()
    waiting = rotate(OLGA)
    new = rotate(OLGA, compromised=True)
    after = {old: "retiring", second: "retired", waiting: "retired", new: "active"}
    assert states() == after
    have_waited(waiting)
    assert run_due_transitions() == []


def test_after_concurrent_compromises_only_the_last_key_is_usable(old: str) -> None:
    made = at_once(lambda: rotate(OLGA, compromised=True))
    after = states()
    assert sorted(after.values()) == ["active", "retired", "retired", "retired", "retired"]
    assert {key for key, state in after.items() if state == "active"} <= set(made)
    assert after[old] == "retired"


def test_rotate_and_retire_are_refused_if_the_key_state_has_changed_meanwhile(old: str) -> None:
    add_key("k1", KeyState.RETIRING)
    with pytest.raises(KeyRefusalError, match=f"key {old} has become active meanwhile"):
        rotate(OLGA, compromised=True, replaces="k1")
    with pytest.raises(KeyRefusalError, match="key k1 has become retiring meanwhile"):
        retire("k1", OLGA, was=KeyState.STANDBY)
    assert states() == {old: "active", "k1": "retiring"}
    retire("k1", OLGA, was=KeyState.RETIRING)
    assert states()["k1"] == "retired"


@pytest.mark.parametrize("work", [retire, destroy])
@pytest.mark.parametrize("state", KeyState)
def test_a_key_is_retired_or_destroyed_only_if_the_table_allows_it(old, state, work):
    key = old if state is KeyState.ACTIVE else add_key("k1", state).id
    then = next_state(state, KeyVerb(work.__name__))
    before, told_before = list(RingKey.objects.values()), changes()
    if then is None:
        with pytest.raises(KeyRefusalError, match=key):
            work(key, OLGA)
        assert (list(RingKey.objects.values()), changes()) == (before, told_before)
        assert not told("key.retired") + told("key.destroyed")
    else:
        work(key, OLGA)
        row = RingKey.objects.get(pk=key)
        assert (row.state, bool(row.wrapped)) == (then, then is not KeyState.DESTROYED)
        assert told(f"key.{then.value}") == [(key, "olga")]
        assert changes() == told_before + 1


def test_a_key_is_destroyed_once(old: str) -> None:
    add_key("k1", KeyState.RETIRED)
    ends = at_once(lambda: refused(lambda: destroy("k1", OLGA)))
    assert sorted(ends) == [False, True, True, True]
    assert len(told("key.destroyed")) == 1


@pytest.mark.parametrize(
    "verb",
    [
        lambda: rotate(OLGA),
        lambda: rotate(OLGA, compromised=True),
        lambda: retire("k1", OLGA),
        lambda: destroy("k2", OLGA),
        run_due_transitions,
    ],
)
def test_an_operation_that_cannot_be_recorded_is_rolled_back(old, verb, monkeypatch):
    add_key("k1", KeyState.RETIRING)
    add_key("k2", KeyState.RETIRED)
    have_expired("k1")
    before = list(RingKey.objects.values())

    def fail(*_: object, **__: object) -> None:
        raise VaultError("the record cannot be written")

    monkeypatch.setattr(lifecycle, "record", fail)
    with pytest.raises(VaultError, match="cannot be written"):
        verb()
    assert list(RingKey.objects.values()) == before


def test_destroying_a_salt_invalidates_the_tenants_tokens_and_keeps_its_payloads(old: str):
    tenant, other = create_tenant("acme", actor=OLGA).id, uuid4()
    mine, theirs = (sealer.seal(Purpose.STATE, each, b"x") for each in (tenant, other))
    payload_key = ensure_tenant(tenant).payload_key
    assert destroy_salt(tenant, OLGA)
    assert TenantSecret.objects.get(tenant=tenant).wrapped_salt == ""
    for work in (
        lambda: sealer.unseal(Purpose.STATE, tenant, mine),
        lambda: sealer.seal(Purpose.STATE, tenant, b"x"),
    ):
        with pytest.raises(SealError) as caught:
            work()
        assert caught.value.reason is Reason.BAD_SALT
    assert sealer.unseal(Purpose.STATE, other, theirs) == b"x"
    assert ensure_tenant(tenant).payload_key == payload_key
    entry = Entry.objects.get(action="salt.destroyed")
    assert (entry.tenant, entry.target, entry.actor_label) == (tenant, str(tenant), "olga")


def test_a_salt_is_destroyed_once_even_if_its_tenant_never_sealed_anything(old: str) -> None:
    tenant = create_tenant("acme", actor=OLGA).id
    assert sorted(at_once(lambda: destroy_salt(tenant, OLGA))) == [False, False, False, True]
    selectors.forget_everything()
    assert ensure_tenant(tenant).salt == b""
    verify_master_key()
    assert len(told("salt.destroyed")) == 1
    assert Change.objects.filter(name="key", tenant=tenant, object_id="salt").count() == 1


def test_an_old_key_is_rotated_by_one_process_if_the_setting_is_on(old, settings):
    age(old, timedelta(days=10_000))
    rotate_if_old()
    assert states() == {old: "active"}
    settings.MCPHOST_KEY_ROTATION_SECONDS = 3600.0
    age(old, timedelta(minutes=59))
    rotate_if_old()
    assert states() == {old: "active"}
    age(old, timedelta(minutes=61))
    at_once(rotate_if_old)
    ((new, actor),) = told("key.rotated")
    assert actor == "vault"
    assert states() == {old: "active", new: "standby"}
    have_waited(new)
    run_due_transitions()
    rotate_if_old()
    assert states() == {old: "retiring", new: "active"}
