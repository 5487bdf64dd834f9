"""The list of calls, and the list of questions that wait for an answer."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from mcphost.audit import call_list, selectors
from mcphost.audit.call_list import ListedCall
from mcphost.audit.models import Entry
from mcphost.audit.open_calls import calls_of
from mcphost.audit.records import Actor
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.services import cancel_call, record
from mcphost.runtime.call import Delivery
from tests.audit.recorded_calls import ACME, HALF_HOUR, MINUTE, OTHER, Story, asking, keep, plain

pytestmark = pytest.mark.django_db

OURS = frozenset({ACME})
EVERYONE = EntryFilter(None)
MAX_WAITING = 5


def story(target: str = "tool", ago: timedelta = 5 * MINUTE) -> Story:
    return Story.of(ACME, target, at=timezone.now() - ago)


def rows(**chosen: object) -> list[ListedCall]:
    return list(call_list.calls(EntryFilter(OURS, **chosen), timezone.now()).calls)  # type: ignore[arg-type]


def states(**chosen: object) -> list[tuple[str, str]]:
    return [(row.entry.target, row.state) for row in rows(**chosen)]


def test_a_call_with_several_rounds_is_one_row() -> None:
    answered = asking("a", "b", ago=HALF_HOUR)
    answered.play("back; answer a; answer b decline; refuse differing; start")
    last = answered.end("tool_error", "it broke")
    keep(answered, plain())
    assert states() == [("plain", "complete"), ("asking", "declined")]
    row = rows()[1]
    assert row.entry.id == last.id
    assert (row.questions, row.refused) == (2, 1)
    assert row.answers == {"accept": 1, "decline": 1}
    assert (row.waiting, row.expires_at) == ((), None)


def every_state() -> dict[str, Story]:
    """A call in each state, whose tool is named after the state."""
    stories = {
        "open": asking(target="open"),
        "expired": asking(target="expired", ago=2 * HALF_HOUR),
        "complete": plain("complete"),
        "unknown": story("unknown").play("start"),
        "answered": asking(target="answered, and nothing since").play("back; answer a"),
        "half": asking("a", "b", target="half answered").play("back; answer a"),
    }
    keep(*stories.values())
    return stories


def test_calls_show_their_state_and_open_input_requests_and_are_filtered_by_state() -> None:
    stories = every_state()
    assert set(states()) == {
        ("open", "open"),
        ("expired", "expired"),
        ("complete", "complete"),
        ("unknown", "unknown"),
        ("answered, and nothing since", "unknown"),
        ("half answered", "open"),
    }
    for state in ("open", "expired", "complete", "unknown", "crashed"):
        assert states(outcome=state) == [each for each in states() if each[1] == state], state
    waiting = {row.entry.target: row for row in rows(outcome="open")}
    assert waiting["open"].expires_at == stories["open"].made[-1].at + HALF_HOUR
    assert (waiting["open"].waiting, waiting["half answered"].waiting) == (("a",), ("b",))


def test_the_state_of_a_call_depends_on_its_rounds_and_not_on_clocks() -> None:
    """The clocks of processes differ, so a later entry may have a smaller id."""
    made = story().play("start; ask a; back; answer a; start; end")
    begun, question, asked, answer, start, end = made.made
    order = (end, answer, question, asked, start, begun)
    ids = sorted(each.id for each in order)
    made.made = [each._replace(id=id) for each, id in zip(order, ids, strict=True)]
    keep(made)
    assert states() == [("tool", "complete")]


def test_calls_are_filtered_by_the_action_of_their_input_responses() -> None:
    outcomes = ["accept", "decline", "cancel", "received"]
    keep(*(asking(target=each).play(f"back; answer a {each}; end") for each in outcomes), plain())
    for outcome in outcomes:
        assert states(questions=outcome) == [(outcome, "complete")]


def test_calls_are_filtered_by_invalid_unasked_and_refused_input_responses() -> None:
    """An answer that did not fit is counted and found as that, and not as accepted."""
    invalid, both = asking(target="invalid"), asking(target="both")
    for made in (invalid, both):
        made.play("back; answer a").ask("a", invalid={"a": "it is no number"})
    both.play("back; answer a").end(invalid={})
    unasked, refused = story("unasked"), asking(target="refused").play("refuse late")
    unasked.answer("a", unasked=True)
    keep(invalid, both, unasked.play("end"), refused, plain())
    answers = {row.entry.target: row.answers for row in rows()}
    assert answers["invalid"] == {"invalid": 1}
    assert answers["both"] == {"accept": 1, "invalid": 1}
    for wanted, targets in (
        ("invalid", {"invalid", "both"}),
        ("accept", {"both", "unasked"}),
        ("unasked", {"unasked"}),
        ("refused", {"refused"}),
        ("asked", {"invalid", "both", "refused"}),
    ):
        assert {target for target, _ in states(questions=wanted)} == targets, wanted


def lost(action: str, target: str, tenant: UUID | None = None, **facts: object) -> None:
    record(action, actor=Actor.person(7, "sam"), tenant=tenant, target=target, facts=facts)


@pytest.mark.parametrize(
    ("tell", "reason"),
    [
        (
            lambda: lost("key.retired", "k1", expired=False),
            "k1, which sealed its state, was retired",
        ),
        (
            lambda: lost("key.rotated", "k2", compromised=True, retired=["k1"]),
            "k1, which sealed its state, was declared compromised",
        ),
        (
            lambda: lost("salt.destroyed", str(ACME), tenant=ACME),
            "the salt of the tenant was destroyed",
        ),
    ],
    ids=["retired", "compromised", "salt destroyed"],
)
def test_a_call_whose_state_cannot_be_unsealed_is_lost_and_never_counted_as_open(tell, reason):
    told = every_state()
    tell()
    (row,) = [each for each in rows(outcome="lost") if each.entry.target == "open"]
    assert row.loss is not None
    assert reason in row.loss.reason
    assert row.loss.by == "sam"
    assert (row.waiting, row.expires_at) == ((), None)
    assert states(outcome="open") == []
    assert call_list.waiting(OURS, timezone.now()) == ()
    assert calls_of(ACME, timezone.now(), 2 * HALF_HOUR) == 0
    assert ("expired", "expired") in states()
    found = call_list.call(told["open"].call.id, OURS, timezone.now())
    assert (found.state, found.loss) == ("lost", row.loss)
    assert [question.outcome for question in found.questions] == ["lost"]
    later = call_list.call(told["open"].call.id, OURS, timezone.now() + 2 * HALF_HOUR)
    assert later.state == "lost"


def test_a_rotation_and_the_loss_of_other_keys_or_salts_lose_no_call() -> None:
    before = (every_state(), states())[1]
    lost("key.rotated", "k2", compromised=False, retired=[])
    lost("key.rotated", "k3", compromised=True, retired=["k2"])
    lost("key.retired", "k4", expired=False)
    lost("salt.destroyed", str(OTHER), tenant=OTHER)
    assert states() == before


def test_cancelled_tasks_and_calls_are_listed_as_cancelled_without_open_input_requests() -> None:
    waits, runs = asking(), story("runs").play("start; cancel_task")
    ended, gone, other = plain("ended"), asking(target="gone"), asking(target="other")
    keep(waits.play("cancel_task"), runs, ended.play("cancel_task"), gone, other)
    with transaction.atomic():
        assert cancel_call(gone.call.id, ACME, "stuck", Actor.person(7, "olga"))
        assert not cancel_call(gone.call.id, uuid4(), "stuck", Actor.person(7, "olga"))
    cancelled = {"asking": "cancelled", "runs": "cancelled", "gone": "cancelled"}
    assert dict(states()) == {**cancelled, "ended": "complete", "other": "open"}
    assert dict(states(outcome="cancelled")) == cancelled
    assert states(outcome="open") == [("other", "open")]
    assert states(outcome="unknown") == []
    found = call_list.waiting(OURS, timezone.now())
    assert [each.entry.target for each in found] == ["other"]
    assert calls_of(ACME, timezone.now(), HALF_HOUR) == 1
    assert calls_of(OTHER, timezone.now(), HALF_HOUR) == 0
    entry = Entry.objects.get(action="call.cancelled", call__isnull=False, actor_label="olga")
    assert (entry.reason, entry.target) == ("stuck", "gone")


def test_calls_are_visible_to_their_own_tenant_only() -> None:
    made = asking()
    keep(made, plain(tenant=OTHER))
    now = timezone.now()
    found = call_list.call(made.call.id, OURS, now)
    assert found.state == "open"
    assert call_list.call(made.call.id, None, now) == found
    assert call_list.call(made.call.id, frozenset({OTHER}), now) is None
    assert call_list.call(uuid4(), None, now) is None
    assert [row.entry.tenant for row in rows()] == [ACME]
    assert call_list.calls(EntryFilter(frozenset()), now).calls == ()
    assert len(call_list.calls(EVERYONE, now).calls) == 2


def test_open_input_requests_are_listed_by_expiry_and_all_are_counted(monkeypatch):
    monkeypatch.setattr(call_list, "MAX_WAITING", MAX_WAITING)
    soon = asking("x", "y", target="soon", ago=HALF_HOUR - MINUTE)
    again = asking("a", "b", target="again").play("back; answer a; ask b; again; ask b")
    task = story("task")
    task.call = task.call._replace(delivery=Delivery.TASK)
    many = [asking(target="many") for _ in range(MAX_WAITING)]
    keep(soon, again, task.play("ask a"), *many, Story.of(OTHER, "other's", at=timezone.now()))
    now = timezone.now()
    found = call_list.waiting(OURS, now)
    assert [(each.entry.target, each.key) for each in found[:2]] == [("soon", "x"), ("soon", "y")]
    assert found[0].expires_at == soon.made[-1].at + HALF_HOUR
    assert len({each.entry.call for each in found}) == MAX_WAITING
    (only,) = call_list.waiting(OURS, now, [again.call.id])[-1:]
    assert (only.key, only.entry.round) == ("b", 2), "not what an earlier round asked"
    assert len(call_list.waiting(None, now)) == len(found)
    for tenants in (frozenset({OTHER}), frozenset[UUID]()):
        assert call_list.waiting(tenants, now) == ()
        assert call_list.count_waiting(tenants, now) == 0
    assert call_list.count_waiting(OURS, now) == MAX_WAITING + 3, "tasks are counted as tasks"
    assert call_list.count_waiting(OURS, now, target="soon") == 2
    assert call_list.count_waiting(None, now, until=now + 2 * MINUTE) == 2


def test_overdue_calls_are_listed_even_when_many_other_calls_expire_sooner(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(call_list, "MAX_WAITING", MAX_WAITING)
    late, later = (
        asking(target="late", ago=4 * MINUTE),
        asking("a", "b", target="later", ago=MINUTE),
    )
    for each in (late, later):
        each.made.clear()
        each.expires = 48 * HALF_HOUR
    late.ask("a")
    later.ask("a", "b")
    keep(late, later, *(asking(target="many", ago=5 * MINUTE) for _ in range(MAX_WAITING + 5)))
    now = timezone.now()
    assert "late" not in {each.entry.target for each in call_list.waiting(OURS, now)}
    targets = {(ACME, "late"): 200.0, (ACME, "later"): 10.0, (OTHER, "many"): 1.0}
    overdue = call_list.overdue(OURS, targets, now)
    assert [(each.call, each.open) for each in overdue] == [(later.call.id, 2), (late.call.id, 1)]
    found = call_list.waiting(OURS, now, [each.call for each in overdue])
    assert len({each.entry.call for each in found}) == MAX_WAITING
    assert [each.entry.target for each in found[-3:]] == ["late", "later", "later"]
    assert call_list.overdue(OURS, {(ACME, "late"): 3600.0}, now) == ()
    assert call_list.overdue(OURS, {}, now) == ()


def test_running_calls_are_counted_beyond_the_page_size() -> None:
    many = [story("runs").play("start") for _ in range(selectors.PAGE + 3)]
    old = story("runs", ago=4 * HALF_HOUR).play("start")
    keep(*many, old, story("other").play("start"), plain("runs"))
    now = timezone.now()
    assert call_list.count_running(OURS, "runs", now - HALF_HOUR, now) == len(many)
    assert call_list.count_running(frozenset({OTHER}), "runs", now - HALF_HOUR, now) == 0


def test_refusals_with_and_without_a_call_are_listed_apart_from_actions() -> None:
    made = asking()
    known = made.refuse("another's principal")
    nowhere = made.refuse("a key that nobody knows")
    made.made[-1] = nowhere._replace(call=None)
    foreign = Story.of(OTHER)
    foreign.refuse("it expired")
    keep(made, foreign)
    found = selectors.refusals(EntryFilter(OURS)).entries
    assert [each.id for each in found] == [nowhere.id, known.id]
    assert [each.reason for each in found] == ["a key that nobody knows", "another's principal"]
    assert len(selectors.refusals(EVERYONE).entries) == 3
    assert selectors.verbs(EVERYONE).entries == ()
