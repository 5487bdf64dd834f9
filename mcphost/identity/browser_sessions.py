"""Browser sessions: which remain valid, and pruning. Django deletes only the rows of users who sign out."""

from collections.abc import Collection

from django.contrib.sessions.models import Session
from django.db.models.functions import Now

PRUNED_AT_ONCE = 500


def prune() -> int:
    """Delete up to 500 sessions that have expired, in one transaction; return how many."""
    expired = Session.objects.filter(expire_date__lt=Now())
    keys = list(expired.values_list("session_key", flat=True)[:PRUNED_AT_ONCE])
    # The filter is applied again, so that a session that was renewed meanwhile stays.
    expired.filter(session_key__in=keys).delete()
    return len(keys)


def alive(keys: Collection[str]) -> frozenset[str]:
    """Return those of these session keys whose session has not ended."""
    going_on = Session.objects.filter(session_key__in=keys, expire_date__gt=Now())
    return frozenset(going_on.values_list("session_key", flat=True))
