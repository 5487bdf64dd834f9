"""Delete changes that every living process has read long ago."""

from datetime import datetime, timedelta

from mcphost.feed.models import Change

KEPT = timedelta(minutes=15)
"""A process that did not read for longer drops its caches. Changes are not kept for a day, because
a tool can announce a thousand a second, which would fill a disk."""
PRUNED_AT_ONCE = 500


def prune(now: datetime) -> int:
    """Delete up to 500 changes older than KEPT, oldest first; return how many.

    Only the beginning of the change log is deleted, so a reader that was behind finds a gap at its
    place, never a hole later.
    """
    seqs = Change.objects.order_by("seq").values_list("seq", flat=True)
    # By time, which has an index: by number the database would scan all kept changes. Changes of one
    # transaction have the same time.
    newest_old = Change.objects.filter(at__lt=now - KEPT).order_by("-at", "-seq").first()
    if newest_old is None:
        return 0
    oldest = list(seqs.filter(seq__lte=newest_old.seq)[:PRUNED_AT_ONCE])
    return Change.objects.filter(seq__lte=oldest[-1]).delete()[0] if oldest else 0
