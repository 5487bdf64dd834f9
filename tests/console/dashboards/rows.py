"""Calls as rows of the record, to be counted."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcphost.audit.models import Entry, Following
from mcphost.audit.records import ROUND_FINISHED
from mcphost.audit.summaries.follower import catch_up


def calls(tenant: UUID, count: int, *, ago: timedelta = timedelta(0), **columns: Any) -> None:
    """Write calls of one round that ended some time ago."""
    at = timezone.now() - ago
    told = {
        "action": ROUND_FINISHED,
        "round": 1,
        "outcome": "complete",
        "actor_kind": "token",
        "actor_label": "olga (laptop)",
        "client_name": "claude-code",
        "method": "tools/call",
        "target": "search",
        "duration_us": 20_000,
        **columns,
    }
    milliseconds = int(at.timestamp() * 1000)
    Entry.objects.bulk_create(
        [
            Entry(
                id=UUID(int=milliseconds << 80 | 7 << 76 | uuid4().int >> 68 | 1 << 63),
                at=at,
                tenant=tenant,
                call=uuid4(),
                **told,
            )
            for _ in range(count)
        ]
    )


def queries(client: Client, path: str) -> int:
    """Return how many queries a page makes while some process follows the record.

    Without such a process the page does that work itself.
    """
    now = timezone.now()
    for _ in range(5):
        catch_up(now)
    Following.objects.update(leased_until=now + timedelta(hours=1))
    client.get(path)  # what is cached is read
    with CaptureQueriesContext(connection) as counted:
        assert client.get(path).status_code == 200
    Following.objects.update(leased_until=None)
    return len(counted)
