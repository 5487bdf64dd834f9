"""At start: find what the code offers, and hear of every change of what tenants offer."""

from mcphost.catalogue import kinds, selectors
from mcphost.feed.loop import ChangeNews, loop


def changed(news: ChangeNews) -> None:
    """Drop the offering that changed, or all of them when the change is everybody's."""
    if news.tenant is None:
        selectors.forget_all()
    else:
        selectors.forget(news.tenant)


kinds.discover()
for what in ("tool", "prompt", "resource"):
    loop.subscribe(what, changed)
loop.on_gap(selectors.forget_all)
