"""A data set of calls with every outcome, by clients and in trials, whose names contain one another."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from mcphost.audit.records import ANSWER_REFUSED
from mcphost.runtime.call import Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.outcomes import FailureKind
from tests.audit.recorded_calls import MINUTE, Story, keep

CLIENTS = ("claude", "claude-code", "", 'say "hi"', "claude")
CALLERS = ("olga", "olga (laptop)", "ben", "olga")
SCRIPTS = {
    **{f"failed: {kind.value}": f"start; end {kind.value}" for kind in FailureKind},
    "complete": "start; end",
    "answered": "start; ask a b; back; answer a; answer b; start; end",
    "declined": "start; ask a; back; answer a decline; start; end tool_error",
    "cancelled by a person": "start; ask a; back; answer a cancel; start; end tool_error",
    "declined, and complete": "start; ask a; back; answer a decline; start; end",
    "declined before, and failed": (
        "start; ask a; back; answer a decline; start; ask b; back; answer b; start; end tool_error"
    ),
    "cancelled by the client": "start; end cancelled",
    "stopped by an operator": "start; ask a; cancel",
    "expired": "start; ask a",
    "open": "start; ask a b",
    "running": "start",
    "refused": "start; ask a",
    "yielded": "start; end yielded; back; start; end",
    "moved": "start; end yielded",
}


def record_every_outcome(tenant: UUID, target: str) -> int:
    """Record a call of each outcome, by clients and in trials, some now and some earlier; return how many calls of
    clients there are."""
    stories = list(_stories(tenant, target))
    keep(*stories)
    return sum(story.call.delivery is not Delivery.PLAYGROUND for story in stories)


def _stories(tenant: UUID, target: str) -> Iterator[Story]:
    number = 0
    for ago in (3 * MINUTE, 8 * MINUTE, timedelta(hours=5), timedelta(days=2)):
        for name, script in SCRIPTS.items():
            for delivery in (Delivery.MODERN, Delivery.PLAYGROUND):
                number += 1
                yield _story(tenant, target, ago, number, delivery).play_as(name, script)


class _Story(Story):
    def play_as(self, name: str, script: str) -> "Story":
        """Play a script; what its name says about its questions is so now."""
        self.expires = {"open": timedelta(days=3), "expired": timedelta(seconds=30)}.get(
            name, timedelta(hours=1)
        )
        self.play(script)
        if name == "refused":
            self.refuse("late", ANSWER_REFUSED, "a")
        return self


def _story(tenant: UUID, target: str, ago: timedelta, number: int, delivery: Delivery) -> _Story:
    caller = CALLERS[number % len(CALLERS)]
    story = _Story.of(
        tenant,
        target if number % 3 else f"{target}-other",
        at=timezone.now() - ago,
        principal=Principal(PrincipalKind.TOKEN, tenant, caller, caller, token_id="tok_1"),
        client=Client(CLIENTS[number % len(CLIENTS)]),
        method="tools/call",
        delivery=delivery,
    )
    assert isinstance(story, _Story)
    return story
