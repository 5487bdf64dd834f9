"""Calls that ask questions, with the entries that the server would write, made round by round."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from mcphost.audit import records
from mcphost.audit.models import Entry, Following
from mcphost.audit.records import Ending, Record, RecordedRequest, new_id
from mcphost.audit.summaries import counting, follower
from mcphost.audit.summaries.follower import Follower
from mcphost.audit.writer.rows import ENTRY_COLUMNS
from mcphost.runtime.call import Call, Delivery
from tests.audit.test_records import CALL

ACME, OTHER = uuid4(), uuid4()
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HALF_HOUR = 30 * MINUTE


def question(key: str) -> str:
    """The default digest of the question with this key."""
    return f"digest of {key}"


_numbers: Final = count()


def id_at(at: datetime) -> UUID:
    """Make an id as a process whose clock shows `at` would, larger than those made before for that time."""
    return UUID(int=int(at.timestamp() * 1000) << 80 | 7 << 76 | 1 << 63 | next(_numbers))


@dataclass
class Story:
    """One call, written entry by entry; methods return the entry that they made.

    `at` is the clock: every entry advances it by a second, and `later` by any time. `back` begins
    the next round with a new HTTP request, as when a client returns its state.
    """

    call: Call = field(default_factory=lambda: CALL._replace(id=new_id(), round=1, version="3"))
    at: datetime = NOW
    made: list[Record] = field(default_factory=list)
    request: RecordedRequest = field(
        default_factory=lambda: RecordedRequest(uuid4(), "192.0.2.1", 321)
    )
    expires: timedelta = HALF_HOUR

    @classmethod
    def of(cls, tenant: UUID, target: str = "update_work_item", **columns: Any) -> "Story":
        at, principal = columns.pop("at", NOW), columns.pop("principal", CALL.principal)
        call = CALL._replace(id=new_id(), tenant=tenant, target=target, round=1, version="3")
        return cls(call._replace(principal=replace(principal, tenant=tenant), **columns), at)

    def play(self, script: str) -> "Story":
        """Let happen what a script says, such as `ask a b; back; answer a decline; end`."""
        for step in script.split("; "):
            verb, *words = step.split()
            getattr(self, verb)(*words)
        return self

    def become_task(self) -> "Story":
        """It becomes a task in its first round, and the second runs."""
        self.play("start; end deferred")
        self.call = self.call._replace(delivery=Delivery.TASK)
        return self.play("back; start")

    def later(self, by: timedelta) -> "Story":
        self.at += by
        return self

    def start(self) -> Record:
        return self._note(self._record(records.ROUND_STARTED, records.NO_ENDING))

    def end(self, outcome: str = "complete", reason: str = "", **facts: Any) -> Record:
        payload = {"arguments": dict(self.call.arguments), "result": {"outcome": outcome}}
        ending = Ending(outcome, reason, 3000, 512, payload, facts or None)
        return self._note(self._record(records.ROUND_FINISHED, ending))

    def ask(self, *keys: str, invalid: dict[str, str] | None = None, **facts: Any) -> Record:
        """End the round with questions."""
        for key in keys:
            self.question(key, **facts)
        more: dict[str, Any] = {"invalid": invalid} if invalid else {}
        expires = (self.at + self.expires).isoformat()
        return self.end(
            "input_required", asked=list(keys), sealed_by="k1", expires_at=expires, **more
        )

    def question(self, key: str, payload: Any = None, **facts: Any) -> Record:
        told = {
            "key": key,
            "question": question(key),
            "method": "elicitation/create",
            "mode": "form",
            **facts,
        }
        params = payload or {"message": f"Which {key}?"}
        ending = Ending("", payload={"question": params}, facts=told)
        return self._note(self._record(records.QUESTION_ASKED, ending))

    def back(self, after: timedelta = MINUTE) -> "Story":
        """The client returns its state: another HTTP request, and the next round."""
        self.later(after)
        self.request = RecordedRequest(uuid4(), "192.0.2.2", 400)
        self.call = self.call._replace(round=self.call.round + 1)
        return self

    def again(self) -> "Story":
        """The client repeats its request: another HTTP request in the same round."""
        self.request = RecordedRequest(uuid4(), "192.0.2.3", 400)
        return self

    def answer(
        self, key: str, outcome: str = "accept", payload: Any = None, **facts: Any
    ) -> Record:
        told = {
            "key": key,
            "question": question(key),
            "method": "elicitation/create",
            "evidence": "client-asserted",
            "seconds": 61.5,
            "sealed_by": "k1",
            "unasked": False,
            **facts,
        }
        said = payload or {"action": outcome, "content": {key: "x"}}
        ending = Ending(outcome, payload={"answer": said}, facts=told)
        return self._note(self._record(records.ANSWER_RECEIVED, ending))

    def cancel_task(self) -> Record:
        """The client cancels the task of the call."""
        return self._note(self._record(records.TASK_CANCELLED, Ending("cancelled")))

    def cancel(self, reason: str = "stuck") -> Record:
        """A user cancels the call."""
        return self._note(self._record(records.CALL_CANCELLED, Ending("cancelled", reason)))

    def repeat(self) -> Record:
        """The client repeats its answers, and nothing runs."""
        facts = {"keys": ["q"], "claim": 2}
        ending = Ending("repeated", facts=facts)
        return self._note(self._record(records.ANSWER_REPEATED, ending))

    def refuse(self, reason: str, action: str = records.STATE_REFUSED, key: str = "") -> Record:
        """A state, or something else, of this call is refused."""
        ending = Ending("refused", reason, facts={"key": key} if key else None)
        return self._note(self._record(action, ending))

    def _record(self, action: str, ending: Ending) -> Record:
        call = self.call
        return records.of_round(action, call, self.request, self.at, ending, call.version)

    def _note(self, record: Record) -> Record:
        record = record._replace(id=id_at(self.at))
        self.made.append(record)
        self.at += timedelta(seconds=1)
        return record


def forked(story: Story | None = None) -> Story:
    """A client retries twice without an answer, and then answers the first state after all."""
    story = story or Story()
    story.ask("q")
    first = story.call
    story.back().ask("q")
    story.back().ask("q")
    story.call = first
    story.back().answer("q", "decline")
    story.end()
    return story


def plain(
    target: str = "plain",
    tenant: UUID = ACME,
    outcome: str = "complete",
    ago: timedelta = 5 * MINUTE,
    **columns: Any,
) -> Story:
    """A call of one round."""
    made = Story.of(tenant, target, at=timezone.now() - ago, **columns)
    made.start()
    made.end(outcome, "" if outcome == "complete" else f"{outcome} happened")
    return made


def asking(*keys: str, target: str = "asking", ago: timedelta = 5 * MINUTE) -> Story:
    """A call of `ACME` that asks for these keys, `a` by default."""
    made = Story.of(ACME, target, at=timezone.now() - ago)
    made.start()
    made.ask(*(keys or ("a",)))
    return made


def keep(*stories: Story) -> None:
    """Write the entries of these calls, without payloads."""
    Entry.objects.bulk_create(
        [row(each) for story in stories for each in story.made], batch_size=100
    )


def row(record: Record) -> Entry:
    columns = {name: getattr(record, name) for name in ENTRY_COLUMNS if name != "commitment"}
    return Entry(**{**columns, "facts": columns["facts"] or {}})


def follow(who: Follower | None = None) -> int:
    """Follow until nothing is left, nor to be counted; return how many rows were written."""
    who, written = who or Follower(), 0
    while True:
        step = who.step()
        written += step.written
        if not step.more:
            while counting.fold(timezone.now()):
                pass
            who.release()
            return written


@transaction.atomic
def catch_up() -> None:
    """Let lists show what is recorded: wait for a process that follows, which a page would not."""
    Following.objects.select_for_update().first()
    follower.catch_up(timezone.now())
