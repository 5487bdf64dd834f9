"""Pages of calls, compared with a full scan of all calls, for every index."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit import call_list, windows
from mcphost.audit.call_list import ListedCall
from mcphost.audit.models import CallSummary
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.summaries import counting, search
from mcphost.runtime.call import Client, Delivery, Principal, PrincipalKind
from tests.audit.recorded_calls import MINUTE, Story, follow, keep

pytestmark = pytest.mark.django_db

TENANTS = [uuid4() for _ in range(25)]
TARGETS = ("deploy", "deploy_all", "Deploy", "other", "demo://notes/1")
CLIENTS = (
    "cursor",
    "Cursor",
    "cursor-vscode",
    "other",
    "",
    "a%b",
    "a_b",
    "x" * 400 + "cursor",
    "界" * 400,
)
CALLERS = ("ada", "Ada", "ada's laptop", "anonymous", "bob", "7")
TRACES = ("ab" * 16, "cd" * 16, "")
REASONS = ("The warehouse did not answer", "no such order", "50% of it\\failed", "")
QUESTIONS = ("asked", "accept", "decline", "invalid", "unasked", "refused")
OUTCOMES = (
    "complete", "tool_error", "declined", "error", "open", "expired", "unknown", "cancelled",
    "input_required",
)  # fmt: skip
LIMIT = 5
CALLS = 60


def made(rng: random.Random, now: datetime) -> Story:
    tenant = rng.choice(TENANTS[:3] if rng.random() < 0.6 else TENANTS)
    caller = rng.choice(CALLERS)
    kind = PrincipalKind.ANONYMOUS if caller == "anonymous" else PrincipalKind.TOKEN
    token = "" if kind is PrincipalKind.ANONYMOUS else rng.choice(("tok_1", "ada", "7"))
    ago = timedelta(days=rng.choice((0, 0, 0, 1, 3, 20, 33, 500)), seconds=rng.randrange(300, 3000))
    target = rng.choice(TARGETS)
    story = Story.of(
        tenant,
        target,
        at=now - ago,
        principal=Principal(kind, tenant, token, caller, token_id=token),
        client=Client(rng.choice(CLIENTS)),
        method="resources/read" if "://" in target else "tools/call",
        trace_id=rng.choice(TRACES),
        delivery=rng.choice((Delivery.MODERN, Delivery.MODERN, Delivery.PLAYGROUND)),
    )
    ENDS[rng.randrange(len(ENDS))](story, rng)
    return story


def fail(story: Story, rng: random.Random) -> None:
    story.end("tool_error", rng.choice(REASONS))


def wait(story: Story, rng: random.Random) -> None:
    story.expires = rng.choice((MINUTE, 600 * MINUTE))
    story.ask("a", "b")


def answer(story: Story, rng: random.Random) -> None:
    story.ask("a", "b")
    story.back(timedelta(seconds=1)).answer("a", rng.choice(("accept", "decline", "cancel")))
    if rng.random() < 0.5:
        story.answer("c", unasked=True)
    if rng.random() < 0.5:
        story.ask("b", invalid={"a": "it does not fit"})
    else:
        fail(story, rng)


def refuse(story: Story, rng: random.Random) -> None:
    story.ask("a")
    story.refuse(rng.choice(REASONS))


def cancel(story: Story, rng: random.Random) -> None:
    story.play("ask a; cancel")


ENDS = (
    lambda story, _: story.end(),
    lambda story, _: story.start(),
    fail, wait, answer, refuse, cancel,
)  # fmt: skip


def chosen_by(rng: random.Random, now: datetime, calls: Sequence[ListedCall]) -> EntryFilter:
    scopes = (None, TENANTS[:1], TENANTS[1:3], TENANTS[:21], TENANTS, TENANTS[20:24], [])
    scope = rng.choice(scopes)
    some = rng.choice(calls).entry
    started = some.at
    values: dict[str, Sequence[Any]] = {
        "target": TARGETS,
        "outcome": OUTCOMES,
        "questions": QUESTIONS,
        "principal": (*CALLERS, "tok_1", "ad", "9", "%", "nobody", '"ada"', '"ad"'),
        "client": (*filter(None, CLIENTS), "curs", "界", "unheard", '"cursor"', '""', '"'),
        "made_by": ("clients", "trials"),
        "call": (
            some.call.hex[:3],
            some.call.hex[:7],
            some.call.hex[:10],
            str(some.call),
            "0",
            "zz",
        ),
        "trace": ("ab" * 16, "cd" * 16, "ef" * 16),
        "words": ("warehouse", "NO order", "50%", "\\", "never"),
        "since": (started, now - timedelta(minutes=20)),
        "until": (started, now - timedelta(minutes=20)),
    }
    names = rng.sample(sorted(values), rng.choice((0, 1, 1, 2, 2, 3, 4)))
    return EntryFilter(
        None if scope is None else frozenset(scope),
        **{name: rng.choice(values[name]) for name in names},
    )


def fits(row: ListedCall, chosen: EntryFilter, unasked: frozenset[UUID | None]) -> bool:
    entry, said = row.entry, chosen.principal
    digits = chosen.call.replace("-", "")
    answered = {
        "": True,
        "asked": row.questions > 0,
        "refused": row.refused > 0,
        "unasked": entry.call in unasked,
    }
    return (
        (chosen.tenants is None or entry.tenant in chosen.tenants)
        and chosen.target in ("", entry.target)
        and chosen.trace in ("", entry.trace_id)
        and chosen.outcome in ("", row.state, "error" if row.state == "tool_error" else "")
        and chosen.made_by in ("", "trials" if entry.delivery == "playground" else "clients")
        and answered.get(chosen.questions, bool(row.answers.get(chosen.questions)))
        and (not said or said in (entry.actor_id, entry.token_id) or named(said, entry.actor_label))
        and named(chosen.client, entry.client_name)
        and entry.call is not None
        and entry.call.hex.startswith(digits)
        and all(part(word, entry.reason) for word in chosen.words.split())
        and (chosen.since is None or entry.at >= chosen.since)
        and (chosen.until is None or entry.at < chosen.until)
    )


def named(said: str, name: str) -> bool:
    is_whole = len(said) > 1 and said.startswith('"') and said.endswith('"')
    return name == said[1:-1] if is_whole else part(said, name)


def part(said: str, whole: str) -> bool:
    return said.lower() in whole.lower()


def walked(chosen: EntryFilter, now: datetime, *, older: bool) -> Iterator[UUID | None]:
    """The calls of all pages, from the newest to the oldest or back."""
    cursor, name = (None, "after") if older else (UUID(int=0), "before")
    for _ in range(CALLS):
        page = call_list.calls(chosen, now, limit=LIMIT, **{name: cursor})
        assert len(page.calls) <= LIMIT
        found = [row.entry.call for row in page.calls]
        yield from found if older else reversed(found)
        following = page.after if older else page.before
        if following is None:
            return
        assert cursor is None or (following < cursor if older else following > cursor)
        cursor = following
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("seed", range(3))
def test_every_combination_of_filters_lists_the_same_calls_as_a_full_scan(monkeypatch, seed):
    rng, now = random.Random(seed), timezone.now()
    monkeypatch.setattr(windows, "WINDOW", 5)
    monkeypatch.setattr(windows, "MAX_WINDOW", 8)
    monkeypatch.setattr(windows, "MAX_WINDOWS", 3)
    monkeypatch.setattr(counting, "MAX_NAMES", rng.choice((1, 3, 200)))
    monkeypatch.setattr(search, "MAX_NAMES", rng.choice((2, 20)))
    stories = [made(rng, now) for _ in range(CALLS)]
    keep(*stories)
    follow()
    assert CallSummary.objects.count() == CALLS
    ids = [story.call.id for story in stories]
    everything, unasked = call_list.listed(ids, now), call_list.unasked(ids)
    for _ in range(15):
        chosen = chosen_by(rng, now, everything)
        wanted = [row.entry.call for row in everything if fits(row, chosen, unasked)]
        assert list(walked(chosen, now, older=True)) == wanted
        assert list(walked(chosen, now, older=False)) == wanted[::-1]


@pytest.mark.parametrize("target", ["", "deploy"])
def test_calls_of_an_old_period_are_listed_at_once_however_many_came_since(monkeypatch, target):
    monkeypatch.setattr(windows, "WINDOW", 5)
    monkeypatch.setattr(windows, "MAX_WINDOWS", 1)
    tenant, now = uuid4(), timezone.now()
    old, new = timedelta(days=2), timedelta(minutes=10)
    stories = [Story.of(tenant, "deploy", at=now - ago) for ago in (*3 * [old], *20 * [new])]
    for story in stories:
        story.end()
    keep(*stories)
    follow()
    chosen = EntryFilter(frozenset({tenant}), target=target, until=now - timedelta(days=1))
    page = call_list.calls(chosen, now)
    assert {row.entry.call for row in page.calls} == {story.call.id for story in stories[:3]}
    assert page.after is None
