"""The writer, against real databases."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from mcphost.audit.models import Entry, Payload
from mcphost.audit.ports import set_payload_cipher
from mcphost.audit.records import Record, new_id
from mcphost.audit.writer import Writer
from tests.audit.ciphers import XorCipher

pytestmark = pytest.mark.django_db(transaction=True)

@pytest.fixture
def writer():
    w = Writer(); w.start(); set_payload_cipher(XorCipher())
    yield w
    w.stop(); set_payload_cipher(None)

async def test_smoke(writer):
    tz = datetime(2026,1,2,3,4,5,tzinfo=UTC)
    a = Record(new_id(), tz, tenant=uuid4(), call=uuid4(), action="x", target="é\0", facts={"a":"\0", "b":[1]}, payload={"p": 1})
    b = Record(new_id(), tz, action="y", actor_kind="system")
    await writer.submit([a, b, a])
    from asgiref.sync import sync_to_async
    def check():
        e = Entry.objects.get(id=a.id)
        assert (e.target, e.facts, e.at, e.tenant, e.call) == ("é\\u0000", {"a": "\\u0000", "b":[1]}, tz, a.tenant, a.call)
        assert len(bytes(e.commitment)) == 32
        assert Entry.objects.count() == 2
        assert Payload.objects.get().entry == a.id
        Entry.objects.get(id=b.id)
    await sync_to_async(check)()
