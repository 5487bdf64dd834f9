"""Reading the record, as the console does."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit import call_list, selectors
from mcphost.audit.models import Payload
from mcphost.audit.ports import set_payload_cipher
from mcphost.audit.records import (
    NO_ENDING,
    ROUND_FINISHED,
    ROUND_STARTED,
    Actor,
    Ending,
    Record,
    RecordedRequest,
    new_id,
    of_round,
)
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.services import erase_payload
from mcphost.audit.services import record as record_verb
from mcphost.audit.writer.writer import Writer
from mcphost.runtime.call import Call
from tests.audit.databases import record
from tests.audit.recorded_calls import row
from tests.audit.submitting import submit_and_wait
from tests.audit.test_records import CALL, PRINCIPAL

pytestmark = pytest.mark.django_db
through_the_writer = pytest.mark.django_db(transaction=True)

ACME, OTHER = uuid4(), uuid4()
EVERYONE = EntryFilter(None)


def a_call(
    tenant: UUID = ACME, target: str = "echo", round: int = 1, id: UUID | None = None
) -> Call:
    return CALL._replace(id=id or new_id(), tenant=tenant, target=target, round=round)


def start(call: Call) -> Record:
    return _write(
        of_round(ROUND_STARTED, call, RecordedRequest(uuid4()), timezone.now(), NO_ENDING)
    )


def finish(call: Call, outcome: str = "complete") -> Record:
    return _write(
        of_round(ROUND_FINISHED, call, RecordedRequest(uuid4()), timezone.now(), Ending(outcome))
    )


def _write(record: Record) -> Record:
    row(record).save()
    return record


def found(chosen: EntryFilter) -> list[UUID]:
    return [row.entry.id for row in call_list.calls(chosen, timezone.now()).calls]


@through_the_writer
def test_an_entry_view_has_every_column(writer: Writer) -> None:
    written = of_round(
        ROUND_FINISHED, a_call(), RecordedRequest(uuid4(), "192.0.2.1", 1), timezone.now(),
        Ending("complete", "r", 2, 3, {"a": 1}), "v",
    )  # fmt: skip
    submit_and_wait(writer, [written], 20)
    view = selectors.entry(written.id, frozenset({ACME}))
    for name in Record._fields[:-2]:
        assert getattr(view, name) == getattr(written, name)
    assert view.facts == {}
    assert isinstance(view.commitment, bytes)
    assert selectors.entry(written.id, frozenset({OTHER})) is None
    assert selectors.entry(uuid4(), None) is None


def test_each_filter_selects_the_matching_entries() -> None:
    mine = finish(a_call())
    foreign = finish(a_call(tenant=OTHER))
    other_tool = finish(a_call(target="rm"), "timed_out")
    principal = replace(PRINCIPAL, id="u1", token_id="tok_2")
    somebody = finish(a_call()._replace(principal=principal, trace_id="trace of one"))
    everything = [somebody.id, other_tool.id, foreign.id, mine.id]
    assert found(EVERYONE) == found(EntryFilter(frozenset({ACME, OTHER}))) == everything
    assert found(EntryFilter(frozenset({ACME}))) == [somebody.id, other_tool.id, mine.id]
    assert found(EntryFilter(frozenset())) == []
    for chosen, expected in (
        ({"target": "rm"}, [other_tool.id]),
        ({"outcome": "timed_out"}, [other_tool.id]),
        ({"principal": "u1"}, [somebody.id]),
        ({"principal": "tok_2"}, [somebody.id]),
        ({"principal": "ada's"}, everything),
        ({"client": "CLI"}, everything),
        ({"client": "other"}, []),
        ({"trace": somebody.trace_id}, [somebody.id]),
        ({"trace": "trace of on"}, []),
        ({"since": foreign.at}, everything[:3]),
        ({"until": foreign.at}, [mine.id]),
        ({"since": mine.at, "until": other_tool.at}, [foreign.id, mine.id]),
        ({"since": timezone.now() + timedelta(hours=3)}, []),
    ):
        assert found(EntryFilter(None, **chosen)) == expected, chosen  # type: ignore[arg-type]


def test_the_entries_of_a_call_are_in_order_and_visible_to_its_tenant_only() -> None:
    call = a_call()
    written = [start(call), finish(call, "input_required"), finish(call._replace(round=2))]
    finish(a_call())
    entries = selectors.call_entries(call.id, frozenset({ACME}))
    assert [each.id for each in entries] == [each.id for each in written]
    assert selectors.call_entries(call.id, None) == entries
    assert selectors.call_entries(call.id, frozenset({OTHER})) == ()


def test_entries_of_actions_are_listed_apart_from_rounds() -> None:
    finish(a_call())
    ada = Actor.person(7, "ada")
    ids = [
        record_verb("tool.published", actor=ada, tenant=ACME, target="echo"),
        record_verb("key.rotated", actor=Actor.system()),
        record_verb("token.revoked", actor=ada, tenant=OTHER, target="tok"),
    ]
    assert [each.id for each in selectors.verbs(EVERYONE).entries] == ids[::-1]
    assert [each.id for each in selectors.verbs(EntryFilter(frozenset({ACME}))).entries] == ids[:1]
    assert [each.id for each in selectors.verbs(EntryFilter(None, principal="7")).entries] == [
        ids[2], ids[0],
    ]  # fmt: skip
    page = selectors.verbs(EVERYONE, limit=2)
    assert [each.id for each in selectors.verbs(EVERYONE, after=page.after).entries] == ids[:1]
    assert found(EVERYONE) != ids


def test_pages_of_actions_can_be_followed_back_to_the_newest() -> None:
    ids = [record_verb("key.rotated", actor=Actor.system()) for _ in range(5)][::-1]
    first = selectors.verbs(EVERYONE, limit=2)
    second = selectors.verbs(EVERYONE, after=first.after, limit=2)
    last = selectors.verbs(EVERYONE, after=second.after, limit=2)
    assert [first.before, second.before, last.before] == [None, ids[2], ids[4]]
    back = selectors.verbs(EVERYONE, before=last.before, limit=2)
    assert (back.entries, back.after, back.before) == (second.entries, ids[3], ids[2])
    newest = selectors.verbs(EVERYONE, before=back.before, limit=2)
    assert (newest.entries, newest.after, newest.before) == (first.entries, ids[1], None)
    assert selectors.verbs(EVERYONE, before=ids[0]).entries == ()


@through_the_writer
def test_a_payload_is_visible_to_its_own_tenant_only(writer: Writer) -> None:
    said = record(tenant=ACME, payload={"n": 2**70, "s": "\ud800"})
    submit_and_wait(writer, [said], 20)
    assert selectors.payload(said.id, ACME).content == {"n": 2**70, "s": "\ud800"}
    assert selectors.payload(said.id, OTHER) is None
    assert selectors.payload(uuid4(), ACME) is None


@through_the_writer
def test_payloads_and_erasures_of_several_entries_are_read_together(writer: Writer) -> None:
    said = [record(tenant=ACME, payload={"n": number}) for number in range(3)]
    foreign = record(tenant=OTHER, payload={"n": 3})
    bare = record(tenant=ACME)
    submit_and_wait(writer, [*said, foreign, bare], 20)
    erase_payload(said[2].id, Actor.person(7, "olga"))
    ids = [each.id for each in (*said, foreign, bare)]
    opened = selectors.payloads(ids, ACME)
    assert {entry: each.content for entry, each in opened.items()} == {
        said[0].id: {"n": 0}, said[1].id: {"n": 1}, said[2].id: None,
    }  # fmt: skip
    known = selectors.kept(ids, ACME)
    assert {entry: each.erased_by for entry, each in known.items()} == {
        said[0].id: "", said[1].id: "", said[2].id: "olga",
    }  # fmt: skip


@through_the_writer
def test_a_payload_that_cannot_be_decrypted_is_returned_with_the_reason(writer: Writer) -> None:
    said = record(tenant=ACME, payload={"a": 1})
    submit_and_wait(writer, [said], 20)
    Payload.objects.update(key_id="destroyed")
    view = selectors.payload(said.id, ACME)
    assert (view.content, view.problem) == (None, "its key is gone")
    set_payload_cipher(None)
    view = selectors.payload(said.id, ACME)
    assert view.problem == "no payload cipher is set"
