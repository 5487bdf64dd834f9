"""Forgetting changes that every living process has heard of long ago."""

from datetime import datetime, timedelta

from mcphost.feed.models import Change

KEPT = timedelta(minutes=15)
"""A process that was away for longer drops what it remembers. A tool can announce a thousand changes
in a second, so that a day's would fill a disk."""
PRUNED_AT_ONCE = 500


def prune(now: datetime) -> int:
    """Delete up to 500 changes older than what is kept, oldest first; return how many went.

    What goes is always the feed's beginning, so that a reader who was behind finds a gap and
    never a hole.
    """
    seqs = Change.objects.order_by("seq").values_list("seq", flat=True)
    # By time, for which there is an index: by number the database would look at all that is kept.
    newest_old = Change.objects.filter(at__lt=now - KEPT).order_by("-at").first()
    if newest_old is None:
        return 0
    oldest = list(seqs.filter(seq__lte=newest_old.seq)[:PRUNED_AT_ONCE])
    return Change.objects.filter(seq__lte=oldest[-1]).delete()[0] if oldest else 0
