"""The list of calls, and the list of questions that wait for an answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.audit import call_list, selectors, windows
from mcphost.audit.call_list import MOST_WAITING, ListedCall
from mcphost.audit.models import CallSummary, Entry, RollUp
from mcphost.audit.open_calls import calls_of
from mcphost.audit.records import Actor
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.services import cancel_call, record
from mcphost.audit.summaries import follower, rollups, search
from mcphost.audit.summaries.rollups import REST, By
from mcphost.runtime.call import Client, Delivery
from tests.audit.asking import HALF_HOUR, MINUTE, Story, forked, keep

pytestmark = pytest.mark.django_db

ACME, OTHER = uuid4(), uuid4()
OURS = frozenset({ACME})
EVERYONE = EntryFilter(None)
ON_PAGE = 19
"""Queries of a page at most, with those that look for new entries."""


def story(target: str = "tool", tenant: UUID = ACME, ago: timedelta = MINUTE) -> Story:
    return Story.of(tenant, target, at=timezone.now() - ago)


def plain(target: str = "plain", tenant: UUID = ACME) -> Story:
    made = story(target, tenant)
    made.end()
    return made


def asking(*keys: str, target: str = "asking", ago: timedelta = MINUTE) -> Story:
    made = story(target, ago=ago)
    made.start()
    made.ask(*(keys or ("a",)))
    return made


def rows(**chosen: object) -> list[ListedCall]:
    return list(call_list.calls(EntryFilter(OURS, **chosen), timezone.now()).calls)  # type: ignore[arg-type]


def states(**chosen: object) -> list[tuple[str, str]]:
    return [(row.entry.target, row.state) for row in rows(**chosen)]


def test_a_call_is_one_row_however_many_rounds_it_has() -> None:
    answered = asking("a", "b")
    answered.back().answer("a")
    answered.answer("b", "decline")
    answered.refuse("its answers differ")
    answered.start()
    last = answered.end("tool_error", "it broke")
    keep(answered, plain())
    assert states() == [("plain", "complete"), ("asking", "tool_error")]
    row = rows()[1]
    assert row.entry.id == last.id
    assert (row.questions, row.refused) == (2, 1)
    assert row.answers == {"accept": 1, "decline": 1}
    assert (row.waiting, row.expires_at) == ((), None)


def every_state() -> dict[str, Story]:
    """A call in each state, whose tool is named after the state."""
    told = {"open": asking(target="open"), "expired": asking(target="expired", ago=2 * HALF_HOUR)}
    told["complete"] = plain("complete")
    told["unknown"] = story("unknown")
    told["unknown"].start()
    answered = asking(target="answered, and nothing since")
    answered.back(MINUTE / 3).answer("a")
    half = asking("a", "b", target="half answered")
    half.back(MINUTE / 3).answer("a")
    keep(*told.values(), answered, half)
    return told


def test_every_call_says_how_it_stands_and_is_found_by_it() -> None:
    every_state()
    assert set(states()) == {
        ("open", "open"),
        ("expired", "expired"),
        ("complete", "complete"),
        ("unknown", "unknown"),
        ("answered, and nothing since", "unknown"),
        ("half answered", "open"),
    }
    for state in ("open", "expired", "complete", "unknown"):
        found = states(outcome=state)
        assert found == [each for each in states() if each[1] == state], state
    assert states(outcome="crashed") == []


def test_a_call_that_waits_says_for_what_and_until_when() -> None:
    told = every_state()
    waiting = {row.entry.target: row for row in rows(outcome="open")}
    asked = told["open"].made[-1]
    assert waiting["open"].expires_at == asked.at + HALF_HOUR
    assert waiting["open"].waiting == ("a",)
    assert waiting["half answered"].waiting == ("b",)


def test_a_state_follows_rounds_and_not_the_order_of_clocks() -> None:
    """The clocks of processes differ, so a later entry may have a smaller id."""
    made = story()
    made.start()
    first = made.ask("a")
    made.back().answer("a")
    start = made.start()
    end = made.end()
    ids = sorted(each.id for each in made.made)
    swapped = {end.id: ids[0], made.made[0].id: ids[-1], start.id: ids[-2], first.id: ids[-3]}
    others = [each for each in ids if each not in swapped.values()]
    made.made = [
        each._replace(id=swapped[each.id] if each.id in swapped else others.pop())
        for each in made.made
    ]
    keep(made)
    assert states() == [("tool", "complete")]


def test_a_call_that_has_its_result_is_not_open_whatever_was_asked_again() -> None:
    later = forked(story("asked again since"))
    later.again().ask("q")
    hung_up = asking(target="hung up", ago=MINUTE)
    hung_up.back(MINUTE / 3).answer("a")
    hung_up.end("cancelled")
    hung_up.again().ask("b")
    keep(forked(story("forked")), later, hung_up)
    over = {("forked", "complete"), ("asked again since", "complete")}
    assert set(states()) == {*over, ("hung up", "open")}
    assert set(states(outcome="complete")) == over
    assert states(outcome="open") == [("hung up", "open")]
    assert [each.key for each in call_list.waiting(OURS, timezone.now())] == ["b"]


@pytest.mark.parametrize("outcome", ["accept", "decline", "cancel", "received"])
def test_calls_are_found_by_how_they_were_answered(outcome: str) -> None:
    one, other = asking(target="one"), asking(target="other")
    one.back().answer("a", outcome)
    one.end()
    other.back().answer("a", "something else")
    keep(one, other, plain())
    assert states(questions=outcome) == [("one", "complete")]


def test_calls_are_found_by_what_was_wrong_with_an_answer() -> None:
    invalid, unasked, refused = asking(target="invalid"), story("unasked"), asking(target="refused")
    invalid.back().answer("a")
    invalid.ask("a", invalid={"a": "it is no number"})
    unasked.answer("a", unasked=True)
    unasked.end()
    refused.refuse("it expired")
    well = asking(target="well")
    well.back().answer("a")
    well.end(invalid={})
    keep(invalid, unasked, refused, well, plain())
    for wanted in ("invalid", "unasked", "refused"):
        assert [target for target, _ in states(questions=wanted)] == [wanted]
    asked = {target for target, _ in states(questions="asked")}
    assert asked == {"invalid", "refused", "well"}


def test_an_answer_that_did_not_fit_is_counted_and_found_as_that_and_not_as_accepted() -> None:
    unfit, both = asking(target="unfit"), asking(target="both")
    for made in (unfit, both):
        made.back(MINUTE / 6).answer("a")
        made.ask("a", invalid={"a": "it is no number"})
    both.back(MINUTE / 6).answer("a")
    both.end()
    keep(unfit, both)
    counted = {row.entry.target: row.answers for row in rows()}
    assert counted == {"unfit": {"invalid": 1}, "both": {"accept": 1, "invalid": 1}}
    assert [target for target, _ in states(questions="accept")] == ["both"]
    assert {target for target, _ in states(questions="invalid")} == {"unfit", "both"}


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
def test_a_call_whose_seal_opens_no_more_is_lost_and_counts_nowhere_as_open(
    tell: Callable[[], None], reason: str
) -> None:
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
    assert found is not None
    assert (found.state, found.loss) == ("lost", row.loss)
    assert [question.fate for question in found.questions] == ["lost"]
    later = call_list.call(told["open"].call.id, OURS, timezone.now() + 2 * HALF_HOUR)
    assert later is not None
    assert later.state == "lost"


def test_a_rotation_and_the_loss_of_another_key_or_tenant_lose_no_call() -> None:
    before = (every_state(), states())[1]
    lost("key.rotated", "k2", compromised=False, retired=[])
    lost("key.rotated", "k3", compromised=True, retired=["k2"])
    lost("key.retired", "k4", expired=False)
    lost("salt.destroyed", str(OTHER), tenant=OTHER)
    assert states() == before


def test_pages_hold_every_call_once_though_more_come_in() -> None:
    expected = [plain() for _ in range(7)]
    keep(*expected)
    seen: list[UUID] = []
    after = None
    while True:
        page = call_list.calls(EVERYONE, timezone.now(), after=after, limit=3)
        seen += [row.entry.id for row in page.calls]
        keep(plain())
        after = page.after
        if after is None:
            break
    assert seen == [each.made[-1].id for each in reversed(expected)]


def test_a_page_on_which_few_match_is_short_rather_than_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(windows, "LARGEST", 2)
    monkeypatch.setattr(windows, "COMPARING_SECONDS", 0.0)
    rare = plain()
    keep(rare, *(plain() for _ in range(4)))
    chosen = EntryFilter(OURS, target=rare.call.target, call=rare.call.id.hex[:7])
    pages, after = [], None
    while True:
        page = call_list.calls(chosen, timezone.now(), after=after)
        pages.append([row.entry.id for row in page.calls])
        after = page.after
        if after is None:
            break
    assert len(pages) == 3
    assert [rare.made[-1].id in each for each in pages].count(True) == 1


@pytest.mark.django_db(transaction=True)  # entries of an open transaction are read again each time
def test_a_page_costs_the_same_whatever_is_on_it(
    django_assert_num_queries,  # type: ignore[no-untyped-def]
    django_assert_max_num_queries,  # type: ignore[no-untyped-def]
) -> None:
    for count in (1, 30):
        keep(*(asking("a", "b") for _ in range(count)))
        follower.catch_up(timezone.now())  # else the page does it
        with django_assert_max_num_queries(ON_PAGE):
            call_list.calls(EVERYONE, timezone.now())
        with django_assert_max_num_queries(ON_PAGE + 1):
            call_list.waiting(OURS, timezone.now())
    keep(half := asking("a", "b"))
    with django_assert_num_queries(2):
        call_list.call(half.call.id, OURS, timezone.now())


def test_a_page_reads_as_much_of_a_call_however_often_its_client_sent_an_answer() -> None:
    read = []
    for count in (2, 60):
        made = asking("a", "b")
        made.back(MINUTE / 60)
        for _ in range(count):
            made.again().answer("a")
            made.ask("a", "b", invalid={"a": "it is no number"})
            made.at = timezone.now()
        made.back(MINUTE / 60).answer("a")
        half = asking("a", "b")
        for _ in range(count):
            half.back(MINUTE / 60).answer("a")
            half.at = timezone.now()
        keep(made, half)
        follower.catch_up(timezone.now())
        with CaptureQueriesContext(connection) as captured:
            page = call_list.calls(EVERYONE, timezone.now(), limit=2)
            waiting = call_list.waiting(OURS, timezone.now(), [made.call.id, half.call.id])
        assert [each.waiting for each in page.calls] == [("b",)] * 2
        assert {each.key for each in waiting} == {"b"}
        listed = {each.entry.call: each for each in page.calls}[made.call.id]
        assert (listed.questions, listed.answers) == (4, {"invalid": count, "accept": 1})
        sent = (each["sql"] for each in captured if 'FROM "audit_entry"' in each["sql"])
        read.append(sum(map(number_of_rows, sent)))
    assert read[1] <= read[0] + 8  # two more calls wait then


def number_of_rows(sql: str) -> int:
    """How many rows a query returns."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return len(cursor.fetchall())


def test_a_cancelled_task_is_cancelled_and_waits_for_nothing() -> None:
    waits, runs, ended, other = asking(), story("runs"), plain("ended"), asking(target="other")
    runs.start()
    for each in (waits, runs, ended):
        each.cancel_task()
    keep(waits, runs, ended, other)
    assert dict(states()) == {
        "asking": "cancelled",
        "runs": "cancelled",
        "ended": "complete",
        "other": "open",
    }
    assert {target for target, _ in states(outcome="cancelled")} == {"asking", "runs"}
    assert states(outcome="open") == [("other", "open")]
    assert states(outcome="unknown") == []
    found = call_list.waiting(OURS, timezone.now())
    assert [each.entry.target for each in found] == ["other"]
    assert calls_of(ACME, timezone.now(), HALF_HOUR) == 1


def test_a_call_that_a_user_cancelled_waits_under_no_key() -> None:
    gone, other = asking(), asking(target="other")
    keep(gone, other)
    with transaction.atomic():
        assert cancel_call(gone.call.id, ACME, "stuck", Actor.person(7, "olga"))
        assert not cancel_call(gone.call.id, uuid4(), "stuck", Actor.person(7, "olga"))
    assert dict(states()) == {"asking": "cancelled", "other": "open"}
    assert states(outcome="cancelled") == [("asking", "cancelled")]
    found = call_list.waiting(OURS, timezone.now())
    assert [each.entry.target for each in found] == ["other"]
    assert calls_of(ACME, timezone.now(), HALF_HOUR) == 1
    entry = Entry.objects.get(action="call.cancelled")
    assert (entry.actor_label, entry.reason, entry.target) == ("olga", "stuck", "asking")


def test_the_caller_of_a_call_is_that_of_its_first_round() -> None:
    made = story("task")
    made.cancel_task()
    made.start()
    made.end("deferred")
    keep(made)
    label = made.call.principal.label
    assert selectors.callers([made.call.id, uuid4()]) == {made.call.id: label}


def test_one_call_is_told_to_its_tenant_only() -> None:
    made = asking()
    keep(made)
    found = call_list.call(made.call.id, OURS, timezone.now())
    assert found is not None
    assert found.state == "open"
    assert call_list.call(made.call.id, None, timezone.now()) == found
    assert call_list.call(made.call.id, frozenset({OTHER}), timezone.now()) is None
    assert call_list.call(uuid4(), None, timezone.now()) is None


def test_what_waits_is_listed_the_soonest_to_expire_first() -> None:
    every_state()
    soon = asking("x", "y", target="soon", ago=HALF_HOUR - MINUTE)
    keep(soon, Story.of(OTHER, "other's", at=timezone.now()))
    found = call_list.waiting(OURS, timezone.now())
    assert [(each.entry.target, each.key) for each in found] == [
        ("soon", "x"),
        ("soon", "y"),
        ("open", "a"),
        ("half answered", "b"),
    ]
    assert found[0].expires_at == soon.made[-1].at + HALF_HOUR
    assert call_list.waiting(frozenset({OTHER}), timezone.now()) == ()
    assert call_list.waiting(frozenset(), timezone.now()) == ()
    assert len(call_list.waiting(None, timezone.now())) == 4


def test_of_many_waiting_calls_those_that_expire_soonest_are_listed_and_all_are_counted() -> None:
    soon = asking("x", "y", target="soon", ago=HALF_HOUR - MINUTE)
    many = [asking(target="many") for _ in range(MOST_WAITING + 5)]
    keep(soon, *many, Story.of(OTHER, "other's", at=timezone.now()))
    now = timezone.now()
    found = call_list.waiting(OURS, now)
    assert [(each.entry.target, each.key) for each in found[:3]] == [
        ("soon", "x"),
        ("soon", "y"),
        ("many", "a"),
    ]
    assert len({each.entry.call for each in found}) == MOST_WAITING
    assert call_list.count_waiting(OURS, now) == MOST_WAITING + 7
    assert call_list.count_waiting(OURS, now, target="soon") == 2
    assert call_list.count_waiting(None, now, until=now + 2 * MINUTE) == 2
    assert call_list.count_waiting(frozenset({OTHER}), now) == 0
    assert call_list.count_waiting(frozenset(), now) == 0


def test_overdue_calls_are_listed_although_others_expire_sooner() -> None:
    late, later = asking(target="late", ago=4 * MINUTE), asking("a", "b", target="later")
    for each in (late, later):
        each.made.clear()
        each.expires = 48 * HALF_HOUR
    late.ask("a")
    later.ask("a", "b")
    keep(late, later, *(asking(target="many", ago=5 * MINUTE) for _ in range(MOST_WAITING + 5)))
    now = timezone.now()
    assert "late" not in {each.entry.target for each in call_list.waiting(OURS, now)}
    targets = {(ACME, "late"): 200.0, (ACME, "later"): 10.0, (OTHER, "many"): 1.0}
    overdue = call_list.overdue(OURS, targets, now)
    assert [(each.call, each.open) for each in overdue] == [(later.call.id, 2), (late.call.id, 1)]
    found = call_list.waiting(OURS, now, [each.call for each in overdue])
    assert len({each.entry.call for each in found}) == MOST_WAITING
    assert [each.entry.target for each in found[-3:]] == ["late", "later", "later"]
    assert call_list.overdue(OURS, {(ACME, "late"): 3600.0}, now) == ()
    assert call_list.overdue(OURS, {}, now) == ()


def test_questions_of_tasks_are_counted_with_the_tasks() -> None:
    task, answered = asking(target="task"), asking("a", "b", target="answered")
    task.made.clear()
    task.call = task.call._replace(delivery=Delivery.TASK)
    task.ask("a")
    answered.back(MINUTE / 3).answer("a")
    keep(task, answered)
    assert len(call_list.waiting(OURS, timezone.now())) == 2
    assert call_list.count_waiting(OURS, timezone.now()) == 1


def test_calls_that_run_are_counted_however_many_there_are() -> None:
    many = [story("runs") for _ in range(selectors.PAGE + 3)]
    for each in many:
        each.start()
    old, other, ended = story("runs", ago=4 * HALF_HOUR), story("other"), plain("runs")
    old.start()
    other.start()
    keep(*many, old, other, ended)
    now = timezone.now()
    assert call_list.count_running(OURS, "runs", now - HALF_HOUR, now) == selectors.PAGE + 3
    assert call_list.count_running(frozenset({OTHER}), "runs", now - HALF_HOUR, now) == 0


def test_what_was_asked_in_an_earlier_round_does_not_wait() -> None:
    made = asking("a", "b")
    made.back(MINUTE / 3).answer("a")
    made.ask("b")
    made.again().ask("b")
    keep(made)
    assert [(each.key, each.entry.round) for each in call_list.waiting(OURS, timezone.now())] == [
        ("b", 2)
    ]


def test_refusals_are_listed_with_and_without_a_call_and_are_no_changes() -> None:
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


def test_tenants_never_meet() -> None:
    keep(asking(), plain(tenant=OTHER))
    assert [row.entry.tenant for row in rows()] == [ACME]
    assert call_list.calls(EntryFilter(frozenset()), timezone.now()).calls == ()
    assert len(call_list.calls(EVERYONE, timezone.now()).calls) == 2


def test_newer_pages_lead_back_to_the_first() -> None:
    keep(*(plain(str(number)) for number in range(7)))
    now = timezone.now()
    first = call_list.calls(EVERYONE, now, limit=3)
    second = call_list.calls(EVERYONE, now, after=first.after, limit=3)
    third = call_list.calls(EVERYONE, now, after=second.after, limit=3)
    assert (first.before, third.after) == (None, None)
    assert call_list.calls(EVERYONE, now, before=third.before, limit=3).calls == second.calls
    back = call_list.calls(EVERYONE, now, before=second.before, limit=3)
    assert (back.calls, back.before, back.after) == (first.calls, None, first.after)


def test_an_empty_page_leads_back_to_the_row_that_it_came_from() -> None:
    keep(*(plain(str(number)) for number in range(3)))
    now = timezone.now()
    first = call_list.calls(EVERYONE, now, limit=2)
    last = call_list.calls(EVERYONE, now, after=first.after, limit=2)
    (oldest,) = last.calls
    lasts = sorted(CallSummary.objects.values_list("last", flat=True))
    empty = call_list.calls(EVERYONE, now, after=lasts[0], limit=2)
    assert (empty.calls, empty.after) == ((), None)
    back = call_list.calls(EVERYONE, now, before=empty.before, limit=2)
    assert back.calls == (first.calls[1], oldest)
    above = call_list.calls(EVERYONE, now, before=lasts[-1], limit=2)
    assert (above.calls, above.before) == ((), None)
    assert call_list.calls(EVERYONE, now, after=above.after, limit=2).calls == first.calls


def test_calls_are_found_by_trace_and_by_words_of_their_errors() -> None:
    broken, traced = (
        story("broken"),
        Story.of(ACME, "traced", at=timezone.now(), trace_id="ab" * 16),
    )
    broken.end("tool_error", "The Warehouse did not answer in time")
    traced.end()
    keep(broken, traced, plain())
    assert states(words="warehouse TIME") == [("broken", "tool_error")]
    assert states(words="warehouse never") == []
    assert states(trace="ab" * 16) == [("traced", "complete")]


@pytest.mark.parametrize("tenants", [OURS, None])
@pytest.mark.parametrize(
    ("by", "exact", "part"),
    [("target", "rare tool", ""), ("client", "rare client", "are cl"), ("principal", "rare", "ar")],
)
def test_a_name_without_a_place_in_the_figures_is_found_too(
    monkeypatch: pytest.MonkeyPatch, tenants: frozenset[UUID] | None, by: str, exact: str, part: str
) -> None:
    monkeypatch.setattr(rollups, "MOST_NAMES", 1)
    keep(first := plain())
    follow()
    made = story("rare tool")
    made.call = made.call._replace(
        client=Client("rare client"), principal=replace(made.call.principal, label="rare")
    )
    made.end()
    keep(made)
    follow()
    assert RollUp.objects.filter(dimension=By.CLIENT + REST).exists()
    for said in filter(None, (exact, part)):
        chosen = EntryFilter(tenants, **{by: said})  # type: ignore[arg-type]
        found = call_list.calls(chosen, timezone.now()).calls
        assert [row.entry.call for row in found] == [made.call.id]
    chosen = EntryFilter(tenants, **{by: "unheard"})  # type: ignore[arg-type]
    assert call_list.calls(chosen, timezone.now()).calls == ()
    found = call_list.calls(EntryFilter(tenants, target="plain"), timezone.now()).calls
    assert [row.entry.call for row in found] == [first.call.id]


def test_a_call_by_a_name_that_is_a_part_of_others_hides_none_of_them() -> None:
    """Any caller chooses the name of its client: it must not decide what a search finds."""
    made = [story(), story(), story()]
    for each, name in zip(made, ("cursor", "cursor-vscode", "cur"), strict=True):
        each.call = each.call._replace(
            client=Client(name), principal=replace(each.call.principal, label=f"{name} of ada")
        )
        each.end()
    made[2].call = made[2].call._replace(principal=replace(made[2].call.principal, label="cur"))
    made[2].end()
    keep(*made)
    follow()
    wanted = [each.call.id for each in reversed(made)]
    for chosen in ({"client": "cur"}, {"client": "CUR"}, {"principal": "cur"}):
        assert [row.entry.call for row in rows(**chosen)] == wanted
        assert [row.entry.call for row in rows(outcome="complete", **chosen)] == wanted


def test_a_name_that_more_tenants_have_than_are_read_one_by_one_is_found_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "MOST_NAMES", 2)
    keep(*(plain(tenant=uuid4()) for _ in range(4)))
    follow()
    for chosen in (EntryFilter(None, target="plain"), EntryFilter(None, client="clien")):
        assert len(call_list.calls(chosen, timezone.now()).calls) == 4


def follow() -> None:
    while follower.follower.step().more:
        pass
