"""The list of questions, compared with a full scan of all questions, for every filter."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit import question_list
from mcphost.audit.models import CallSummary, QuestionSummary
from mcphost.audit.question_list import Counted, QuestionFilter, RecordedQuestion
from mcphost.audit.selectors import time_of
from mcphost.audit.timeline import OPEN
from mcphost.runtime.call import Client, Delivery, Principal, PrincipalKind
from tests.audit.recorded_calls import MINUTE, Story, follow, keep

pytestmark = pytest.mark.django_db

TENANTS = [uuid4() for _ in range(25)]
TARGETS = ("deploy", "deploy_all", "refund")
CLIENTS = ("cursor", "Cursor-vscode", "other", "")
CALLERS = ("ada", "Ada's laptop", "bob", "7")
STATES = (
    ("open",),
    ("accept", "received"),
    ("decline",),
    ("expired",),
    ("never", "repeated", "lost"),
)
ENDS = (
    "start; ask a b",
    "start; ask a; back; answer a; end",
    "start; ask a; back; answer a decline; end tool_error",
    "start; ask a; back; answer a; ask b; back; answer b cancel; end",
    "start; ask a; cancel",
    "start; ask a; back; ask a",
    "start; ask a; again; ask a",
    "start; end",
)
LIMIT = 5


def made(rng: random.Random, now: datetime) -> Story:
    tenant = rng.choice(TENANTS[:3] if rng.random() < 0.6 else TENANTS)
    token = rng.choice(("tok_1", "7"))
    ago = timedelta(days=rng.choice((0, 0, 1, 20, 33, 500)), seconds=rng.randrange(300, 3000))
    story = Story.of(
        tenant,
        rng.choice(TARGETS),
        at=now - ago,
        principal=Principal(
            PrincipalKind.TOKEN, tenant, token, rng.choice(CALLERS), token_id=token
        ),
        client=Client(rng.choice(CLIENTS)),
    )
    story.expires = rng.choice((MINUTE, 600 * MINUTE))
    return story.play(rng.choice(ENDS))


def chosen_by(
    rng: random.Random, now: datetime, rows: Sequence[RecordedQuestion]
) -> QuestionFilter:
    scope = rng.choice((None, TENANTS[:1], TENANTS[1:3], TENANTS[:21], TENANTS, []))
    some = rng.choice(rows)
    values: dict[str, Sequence[Any]] = {
        "target": (*TARGETS, "none"),
        "principal": (*CALLERS, "tok_1", "ad", "%", "nobody"),
        "client": (*filter(None, CLIENTS), "curs", "unheard", '"cursor"', '""'),
        "counted": (
            Counted(some.at),
            Counted(now - timedelta(minutes=20), now),
            Counted(None, some.at),
        ),
        "states": STATES,
        "calls": ((some.call,), (some.call, rng.choice(rows).call), ()),
        "since": (some.at, now - timedelta(minutes=20)),
        "until": (some.at, now - timedelta(minutes=20)),
    }
    names = rng.sample(sorted(values), rng.choice((0, 1, 1, 2, 2, 3)))
    return QuestionFilter(
        None if scope is None else frozenset(scope),
        **{name: rng.choice(values[name]) for name in names},
    )


def has_client(row: RecordedQuestion, client: str) -> bool:
    if client.startswith('"'):
        return row.client_name == client.strip('"')
    return client.lower() in row.client_name.lower()


def ended_at(row: RecordedQuestion) -> datetime:
    """The time of the call's state, without parts of milliseconds, as in ids."""
    return time_of(CallSummary.objects.get(call=row.call).last)


def is_counted(row: RecordedQuestion, counted: Counted) -> bool:
    at = ended_at(row)
    since, until = (
        end and end.replace(microsecond=end.microsecond // 1000 * 1000) for end in counted
    )
    return (since is None or at >= since) and (until is None or at < until)


def fits(row: RecordedQuestion, chosen: QuestionFilter) -> bool:
    name = chosen.principal
    return (
        (chosen.tenants is None or row.tenant in chosen.tenants)
        and chosen.target in ("", row.target)
        and has_client(row, chosen.client)
        and (chosen.counted is None or is_counted(row, chosen.counted))
        and (name.lower() in row.caller.lower() or name in (row.actor_id, row.token_id))
        and (not chosen.states or row.state in chosen.states)
        and (chosen.calls is None or (row.call in chosen.calls and row.state == OPEN))
        and (chosen.since is None or row.at >= chosen.since)
        and (chosen.until is None or row.at < chosen.until)
    )


def walk(chosen: QuestionFilter, now: datetime) -> Iterator[UUID]:
    """All questions that a filter selects, page by page, and back again."""
    after, pages = None, []
    while True:
        page = question_list.questions(chosen, now, after=after, limit=LIMIT)
        pages.append([each.id for each in page.questions])
        yield from pages[-1]
        if page.after is None:
            break
        after = page.after
    if after is not None:
        back = question_list.questions(chosen, now, before=page.before, limit=LIMIT)
        assert not set(pages[-1]) & {each.id for each in back.questions}


@pytest.mark.parametrize("seed", range(6))
def test_every_filter_finds_what_a_full_scan_finds(seed: int) -> None:
    rng, now = random.Random(seed), timezone.now()
    keep(*(made(rng, now) for _ in range(60)))
    follow()
    rows = question_list.of_calls(QuestionSummary.objects.values_list("call", flat=True))
    assert len(rows) > 60
    for _ in range(60):
        chosen = chosen_by(rng, now, rows)
        assert list(walk(chosen, now)) == [row.id for row in rows if fits(row, chosen)], chosen
        ids = [row.id for row in rows]
        expected = {row.id for row in rows if fits(row, chosen)}
        assert question_list.matching_ids(ids, chosen) == expected


def test_a_question_says_what_became_of_it_and_of_its_answer() -> None:
    story = Story.of(
        TENANTS[0], "refund", at=timezone.now() - 5 * MINUTE, client=Client("cursor", "3")
    )
    keep(story.play("start; ask approve reason; back; answer approve decline; end tool_error"))
    follow()
    refused, ignored = sorted(question_list.of_calls([story.call.id]), key=lambda row: row.key)
    assert (refused.key, refused.state, refused.ran) == ("approve", "decline", "tool_error")
    assert (refused.took_ms, refused.evidence) == (61_500, "client-asserted")
    assert refused.answered_by == refused.caller == "Ada's laptop"
    assert (refused.target, refused.target_version, refused.client_version) == ("refund", "3", "3")
    assert (ignored.state, ignored.answer, ignored.ran) == ("never", None, "")
    assert question_list.states_of_calls([story.call.id]) == {story.call.id: "declined"}


def test_a_question_that_another_run_of_its_round_asked_again_is_listed_once() -> None:
    story = Story.of(TENANTS[0], at=timezone.now() - 5 * MINUTE)
    keep(story.play("start; ask a"))
    follow()
    first = question_list.of_calls([story.call.id])
    again = replace(story, made=[]).again()
    again.play("start; ask a")
    keep(again)
    follow()
    second = question_list.of_calls([story.call.id])
    assert [row.key for row in first] == [row.key for row in second] == ["a"]
    assert first[0].id < second[0].id


def test_a_question_of_another_tenant_is_not_found_by_its_id() -> None:
    story = Story.of(TENANTS[0], at=timezone.now() - 5 * MINUTE, delivery=Delivery.LEGACY)
    keep(story.play("start; ask a"))
    follow()
    (row,) = question_list.of_calls([story.call.id])
    now = timezone.now()
    assert question_list.question(row.id, frozenset(TENANTS[:1]), now) == row
    assert question_list.question(row.id, frozenset(TENANTS[1:]), now) is None
