"""Announcing changes."""

from uuid import uuid4

import pytest
from django.db import transaction

from mcphost.feed.loop import ChangeNews, loop
from mcphost.feed.models import Change
from mcphost.feed.services import announce

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_committed_announcement_reaches_its_own_process_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[ChangeNews] = []
    monkeypatch.setitem(loop._subscribers, "test", [heard.append])
    loop.poll()
    tenant = uuid4()
    with transaction.atomic():
        seq = announce("test", tenant=tenant, object_id="x")
        assert heard == []
    assert heard == [ChangeNews(seq, tenant, "test", "x")]


def test_announcing_outside_a_transaction_is_refused() -> None:
    with pytest.raises(transaction.TransactionManagementError, match="inside the transaction"):
        announce("test")
    assert not Change.objects.exists()
