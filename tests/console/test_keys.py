"""Tests of the key pages: the platform's keys, for staff, and destroying a tenant's salt."""

import re
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.audit import last_use
from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.calls.models import Session
from mcphost.console import key_effects
from mcphost.sealing.tokens import Purpose
from mcphost.vault import sealer
from mcphost.vault.lifecycle import rotate, run_due_transitions
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.services import ensure_ring, ensure_tenant
from mcphost.vault.states import KeyState
from tests.audit.waiting import asked
from tests.cast import Cast
from tests.tasks.rows import a_task
from tests.vault.rings import add_key, have_waited, states

pytestmark = pytest.mark.django_db

KEYS = "/admin/keys/"
SALT = "/admin/t/acme/salt/"


@pytest.fixture
def old() -> str:
    return ensure_ring()


def a_session(tenant: UUID, ago: timedelta, ended_at: datetime | None = None) -> None:
    now = timezone.now()
    Session.objects.create(
        id=uuid4(),
        tenant=tenant,
        principal_key="token:t",
        revision="2025-11-25",
        created_at=now - ago,
        ended_at=ended_at,
        expires_at=now + timedelta(hours=1),
    )


def confirmed(client: Client, path: str) -> Any:
    """Send the form of a confirmation page."""
    return client.post(path, bound(client.get(path)))


def compromised(client: Client, key: str) -> Any:
    """Type the id of a key on the page that declares it compromised."""
    path = f"{KEYS}compromised/"
    return client.post(path, {**bound(client.get(path)), "key": key})


def bound(page: Any) -> dict[str, str]:
    """Return the hidden fields of a confirmation page."""
    fields = re.findall(r'<input type="hidden" name="(was|replaces)" value="(\w*)">', text(page))
    return dict(fields)


def text(page: Any) -> str:
    return unescape(page.content.decode())


def said(client: Client, page: Any) -> list[str]:
    """Return the messages at the top of the page that a form redirected to."""
    return [str(each) for each in client.get(page["Location"]).context["messages"]]


def test_every_key_is_shown_with_its_state_and_calls_in_flight(staff: Client, old: str) -> None:
    add_key("k1", KeyState.RETIRING)
    add_key("k2", KeyState.RETIRED)
    add_key("k3", KeyState.DESTROYED)
    for _ in range(7):
        asked("k1")
    page = text(staff.get(KEYS))
    for word in (old, "k1", "k2", "k3", "active", "retiring", "retired", "destroyed"):
        assert word in page
    assert ">7 calls<" in page
    assert "links that were already sent are not stored, and so not counted" in page
    assert page.count(">none counted<") == 1  # of the active key
    assert page.count(">nothing<") == 2  # of those that open nothing
    assert f"{KEYS}k1/retire/" in page
    assert f"{KEYS}k2/destroy/" in page
    assert f"{KEYS}{old}/" not in page
    assert f"{KEYS}k3/" not in page
    assert "refresh" not in page


def test_a_rotation_is_confirmed_and_the_page_follows_the_new_key(staff: Client, old: str):
    assert "No call will be interrupted." in text(staff.get(f"{KEYS}rotate/"))
    assert states() == {old: "active"}
    done = staff.post(f"{KEYS}rotate/")
    (new,) = set(states()) - {old}
    assert done["Location"] == f"{KEYS}#key-{new}"
    assert states()[new] == "standby"
    assert 'data-live="5"' in text(staff.get(KEYS))
    have_waited(new)
    run_due_transitions()
    assert 'data-live="5"' in text(staff.get(KEYS))
    entry = Entry.objects.get(action="key.rotated")
    assert (entry.actor_kind, entry.actor_label, entry.target) == ("person", "staff", new)


def test_declaring_a_compromise_first_shows_the_losses(staff: Client, old: str) -> None:
    asked(old)
    asked(old)
    page = text(staff.get(f"{KEYS}compromised/"))
    assert f"Everything sealed with <code>{old}</code> will be refused" in page
    assert "No key that was replaced earlier still opens anything." in page
    assert states() == {old: "active"}
    assert "2 waiting calls will be lost." in page
    keys_page = text(staff.get(KEYS))
    assert "refused: 2 waiting calls would be lost. Links that were" in keys_page
    assert keys_page.index("compromised/") > keys_page.index(f'id="key-{old}"')
    for typed in ("", "2", "another"):
        wrong = {**bound(staff.get(f"{KEYS}compromised/")), "key": typed}
        assert staff.post(f"{KEYS}compromised/", wrong).status_code == 200
        assert states() == {old: "active"}
    (after,) = said(staff, compromised(staff, old))
    assert f"sealed with `{old}` is refused. Lost: 2 waiting calls." in after
    assert states()[old] == "retired"
    assert sorted(states().values()) == ["active", "retired"]
    assert Entry.objects.get(action="key.rotated").facts["compromised"] is True
    page = text(staff.get(KEYS))
    assert '<span class="c-badge c-bad">2</span>' in page
    assert "No waiting calls" in text(staff.get("/admin/calls/?outcome=open"))


def test_declaring_a_compromise_replaces_only_the_key_named_on_its_page(
    staff: Client, old: str
) -> None:
    seen = bound(staff.get(f"{KEYS}compromised/"))
    assert seen == {"replaces": old}
    said(staff, staff.post(f"{KEYS}compromised/", {**seen, "key": old}))
    after = states()
    (new,) = set(after) - {old}
    (refused,) = said(staff, staff.post(f"{KEYS}compromised/", {**seen, "key": old}))
    assert refused.startswith(f"Nothing was changed: key {new} has become active meanwhile.")
    assert staff.post(f"{KEYS}compromised/", {}).status_code == 200
    assert states() == after == {old: "retired", new: "active"}


def test_a_key_activated_in_the_meantime_is_not_retired_as_a_standby_key(staff: Client, old: str):
    new = rotate(Actor.system())
    seen = bound(staff.get(f"{KEYS}{new}/retire/"))
    assert seen == {"was": "standby"}
    have_waited(new)
    run_due_transitions()
    have_waited(rotate(Actor.system()))
    run_due_transitions()
    for sent in (seen, {}):
        (refused,) = said(staff, staff.post(f"{KEYS}{new}/retire/", sent))
        assert refused.startswith(f"Nothing was changed: key {new} has become retiring meanwhile.")
    assert states()[new] == "retiring"


@pytest.mark.parametrize(
    ("verb", "state", "why"),
    [
        ("retire", KeyState.RETIRED, "is already retired"),
        ("retire", KeyState.DESTROYED, "is already destroyed"),
        ("destroy", KeyState.RETIRING, "still opens tokens"),
        ("destroy", KeyState.STANDBY, "is about to become active"),
    ],
)
def test_an_impossible_key_action_is_refused_with_the_reason(staff, old, verb, state, why):
    add_key("k1", state)
    path = f"{KEYS}k1/{verb}/"
    for method in (staff.get, staff.post):
        (message,) = said(staff, method(path))
        assert why in message
    assert states()["k1"] == state


def test_an_owner_destroys_the_salt_by_typing_the_slug(cast: Cast, owner: Client) -> None:
    tenant = cast.acme.id
    ensure_tenant(tenant)
    assert SALT in text(owner.get("/admin/t/acme/settings/"))
    assert "No waiting calls, open sessions or tasks will be lost." in text(owner.get(SALT))
    a_task(tenant, request="mcps1.k1.abc")
    page = text(owner.get(SALT))
    assert "1 task will be lost." in page
    assert "This is not the tenant's slug." in text(owner.post(SALT, {"slug": "globex"}))
    assert TenantSecret.objects.get(tenant=tenant).wrapped_salt
    assert owner.post(SALT, {"slug": "acme"})["Location"] == "/admin/t/acme/settings/"
    assert TenantSecret.objects.get(tenant=tenant).wrapped_salt == ""
    entry = Entry.objects.get(action="salt.destroyed")
    assert (entry.tenant, entry.actor_label) == (tenant, "owner")
    settings = text(owner.get("/admin/t/acme/settings/"))
    assert SALT not in settings
    assert "nothing can be sealed for this tenant" in settings
    for method in (owner.get, owner.post):
        last = said(owner, method(SALT, {"slug": "acme"}))[-1]
        assert last == "The salt has already been destroyed."
    assert Entry.objects.filter(action="salt.destroyed").count() == 1


def test_only_those_who_may_replace_a_compromised_key_are_led_to_the_keys(
    cast: Cast, owner: Client, staff: Client
) -> None:
    ensure_tenant(cast.acme.id)
    assert 'replace the compromised key under <a href="/admin/keys/">Keys</a>' in text(
        staff.get(SALT)
    )
    page = text(owner.get(SALT))
    assert "ask platform staff to replace the compromised key instead" in page
    assert KEYS not in page


def test_counts_that_are_zero_are_left_out() -> None:
    assert str(key_effects.UnderKey(5, 0, 2)) == "5 waiting calls and 2 tasks"
    assert str(key_effects.UnderKey(1, 1, 1)) == "1 waiting call, 1 open session and 1 task"
    assert str(key_effects.UnderKey(0, 3, 0)) == "3 open sessions"
    assert str(key_effects.UnderKey()) == ""


def test_sessions_and_tasks_are_counted_under_the_key_that_sealed_them(
    staff: Client, cast: Cast, old: str, settings: Any
):
    settings.MCPHOST_ALONE = True  # this process counts, also without a heartbeat
    first = RingKey.objects.get(pk=old)
    first.activated_at = timezone.now() - timedelta(hours=3)
    first.save()
    new = add_key("k2", KeyState.STANDBY)
    a_session(cast.acme.id, ago=timedelta(hours=2))
    a_session(cast.acme.id, ago=timedelta(hours=2), ended_at=timezone.now())
    a_task(cast.acme.id, request=f"mcps1.{old}.abc", journal="mcps1.k2.abc")
    a_task(cast.globex.id, request="mcps1.k9.abc", journal="mcps1.k9.abc")
    under = {key.id: counts for key, _, counts, _ in staff.get(KEYS).context["keys"]}
    assert {known.processes for _, _, _, known in staff.get(KEYS).context["keys"]} == {1}
    assert (under[old].sessions, under[old].tasks) == (1, 1)
    assert (under[new.id].sessions, under[new.id].tasks) == (0, 1)
    one_of_each = '<span class="c-nowrap">1 session,</span> <span class="c-nowrap">1 task</span>'
    assert one_of_each in text(staff.get(KEYS))
    assert key_effects.under_key_of_tenant(cast.acme.id, timezone.now()) == key_effects.UnderKey(
        0, 1, 1
    )
    assert key_effects.under_key_of_tenant(cast.globex.id, timezone.now()) == key_effects.UnderKey(
        0, 0, 1
    )


def test_housekeeping_writes_the_last_use_of_a_key(staff: Client, cast: Cast) -> None:
    old = ensure_ring()
    last_use.discard_unwritten()
    ensure_tenant(cast.acme.id)
    token = sealer.seal(Purpose.STATE, cast.acme.id, b"x")
    row = RingKey.objects.get(pk=old)
    assert (row.last_sealed_at, row.last_opened_at) == (None, None)
    assert last_use.flush(timezone.now()) == 1
    assert "sealed <time" in text(staff.get(KEYS))
    sealer.unseal(Purpose.STATE, cast.acme.id, token)
    sealer.unseal(Purpose.STATE, cast.acme.id, token)
    assert last_use.flush(timezone.now()) == 1
    row.refresh_from_db()
    assert row.last_sealed_at is not None
    assert row.last_opened_at is not None
    page = staff.get(KEYS)
    assert "opened <time" in text(page)
    assert [line.used is not None for line in page.context["picture"].lines] == [True]


def test_the_bar_of_the_active_key_ends_at_the_present(staff: Client, old: str) -> None:
    have_lived(old, timedelta(days=30))
    have_waited(rotate(Actor.system()))
    run_due_transitions()
    picture = staff.get(KEYS).context["picture"]
    (active,) = [
        bar for line in picture.lines for bar in line.bars if bar.phase.state is KeyState.ACTIVE
    ][:1]
    assert active.width == "0.500%"
    end = float(active.x.removesuffix("%")) + float(active.width.removesuffix("%"))
    assert end == pytest.approx(float(picture.now.removesuffix("%")), abs=0.01)


def legend(page: Any) -> list[str]:
    """Return what the picture explains."""
    (items,) = re.findall(r'<ul class="c-key">(.*?)</ul>', text(page))
    return re.findall(r"</svg>([^<]*)</li>", items)


def test_the_rest_of_a_key_that_retires_later_is_drawn_as_planned(staff: Client, old: str) -> None:
    have_lived(old, timedelta(days=30))
    assert legend(staff.get(KEYS)) == ["active: seals and opens", "now"]
    have_waited(rotate(Actor.system()))
    run_due_transitions()
    RingKey.objects.filter(pk=old).update(state_since=timezone.now() - timedelta(days=2))
    RingKey.objects.exclude(pk=old).update(activated_at=timezone.now() - timedelta(days=2))
    page = staff.get(KEYS)
    (line,) = (line for line in page.context["picture"].lines if line.key.id == old)
    bars = [(bar.phase.state, bar.planned) for bar in line.bars]
    retiring = KeyState.RETIRING
    assert bars == [(KeyState.ACTIVE, False), (retiring, False), (retiring, True)]
    _, past, planned = ((float(bar.x[:-1]), float(bar.width[:-1])) for bar in line.bars)
    now = float(page.context["picture"].now[:-1])
    assert past[0] + past[1] == pytest.approx(now, abs=0.01)
    assert planned == pytest.approx((now, 100 - now), abs=0.01)
    assert legend(page) == ["active: seals and opens", "retiring: opens", "planned", "now"]
    assert text(page).count(", as planned</title>") == 2  # of both parts


def test_a_key_on_standby_is_drawn_as_long_as_it_does_not_seal(staff: Client, old: str) -> None:
    have_lived(old, timedelta(days=30))
    have_waited(rotate(Actor.system()))
    assert legend(staff.get(KEYS))[0] == "standby"
    run_due_transitions()
    assert "standby" not in legend(staff.get(KEYS))


def have_lived(key: str, by: timedelta) -> None:
    """Let a key be active since then."""
    since = timezone.now() - by
    RingKey.objects.filter(pk=key).update(created_at=since, activated_at=since)


def test_a_confirmed_rotation_does_not_run_the_queries_of_its_page(
    staff: Client, old: str, settings: Any
) -> None:
    settings.MCPHOST_ALONE = False
    reading = {}
    for method in (staff.get, staff.post):
        with CaptureQueriesContext(connection) as queries:
            method(f"{KEYS}rotate/")
        reading[method.__name__] = [q["sql"] for q in queries if "feed_node" in q["sql"]]
    assert reading["get"]
    assert reading["post"] == []
