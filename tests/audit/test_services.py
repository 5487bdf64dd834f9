"""Recording actions, and erasing payloads."""

from uuid import uuid4

import pytest
from django.db import transaction

from mcphost.audit import selectors
from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import Actor
from mcphost.audit.services import NoSuchPayloadError, erase_payload, record, record_each
from mcphost.audit.writer.writer import Writer
from tests.audit.databases import record as some_record
from tests.audit.submitting import submit_and_wait

TENANT = uuid4()
ADA = Actor.person(7, "ada")


@pytest.mark.django_db
def test_an_action_is_recorded_with_its_actor_target_and_facts() -> None:
    entry_id = record(
        "tool.published", actor=Actor("person", "7", "a\0da", "tok"), tenant=TENANT,
        target="echo", facts={"number": 3, "why\0": ["\ud800"]},
    )  # fmt: skip
    entry = Entry.objects.get(id=entry_id)
    assert (entry.action, entry.tenant, entry.target) == ("tool.published", TENANT, "echo")
    assert (entry.actor_kind, entry.actor_id) == ("person", "7")
    assert (entry.actor_label, entry.token_id) == ("a\\u0000da", "tok")
    assert entry.facts == {"number": 3, "why\\u0000": ["\\ud800"]}
    assert entry.call is None


@pytest.mark.django_db
def test_an_action_on_several_objects_is_recorded_once_per_object() -> None:
    about = {f"entry {number}": {"tool\0": number} for number in range(600)}
    record_each("payload.viewed", about, actor=ADA, tenant=TENANT)
    found = Entry.objects.order_by("id")
    assert {each.target: each.facts for each in found} == {
        target: {"tool\\u0000": number} for number, target in enumerate(about)
    }
    assert {(each.action, each.tenant, each.actor_id, each.actor_label) for each in found} == {
        ("payload.viewed", TENANT, "7", "ada")
    }


@pytest.mark.django_db(transaction=True)
def test_an_action_that_is_rolled_back_leaves_no_entry() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record("tool.published", actor=Actor.system())
        raise ZeroDivisionError
    assert not Entry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_erased_payload_leaves_a_tombstone_its_commitment_and_an_entry(writer: Writer):
    said = some_record(tenant=TENANT, payload={"text": "hello"})
    submit_and_wait(writer, [said], 20)
    commitment = Entry.objects.get(id=said.id).commitment
    assert selectors.payload(said.id, TENANT) == selectors.PayloadView(said.id, {"text": "hello"})

    assert erase_payload(said.id, ADA) is True
    row = Payload.objects.get()
    assert bytes(row.ciphertext) == b""
    view = selectors.payload(said.id, TENANT)
    assert view == selectors.PayloadView(said.id, None, row.erased_at, "ada")
    assert row.erased_at is not None
    assert Entry.objects.get(id=said.id).commitment == commitment
    verb = Entry.objects.get(action="payload.erased")
    assert (verb.tenant, verb.target, verb.actor_id) == (TENANT, str(said.id), "7")

    assert erase_payload(said.id, ADA) is False
    assert Entry.objects.filter(action="payload.erased").count() == 1

    submit_and_wait(writer, [said], 20)
    assert bytes(Payload.objects.get().ciphertext) == b"", "a late repetition brings nothing back"


@pytest.mark.django_db
def test_erasing_the_payload_of_an_unknown_entry_is_refused() -> None:
    with pytest.raises(NoSuchPayloadError):
        erase_payload(uuid4(), ADA)
    assert not Entry.objects.exists()
