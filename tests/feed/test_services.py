import pytest
from django.db import transaction

from mcphost.feed.loop import loop
from mcphost.feed.services import announce


@pytest.mark.django_db(transaction=True)
def test_a_committed_announcement_is_heard_at_once_in_its_own_process():
    heard = []
    loop.subscribe("test", heard.append)
    loop.poll()
    with transaction.atomic():
        seq = announce("test", object_id="x")
        assert heard == []
    assert [(n.seq, n.object_id) for n in heard] == [(seq, "x")]


@pytest.mark.django_db(transaction=True)
def test_announcing_outside_a_transaction_is_refused():
    with pytest.raises(transaction.TransactionManagementError, match="inside the transaction"):
        announce("test")
