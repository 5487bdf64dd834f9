"""At start: load the code's functions, and subscribe to changes of what tenants offer."""

from mcphost.catalogue import kinds, selectors
from mcphost.feed.loop import ChangeNews, loop


def changed(news: ChangeNews) -> None:
    """Drop the offering of the changed tenant, or all when the change names no tenant."""
    if news.tenant is None:
        selectors.forget_all()
    else:
        selectors.forget(news.tenant)


kinds.discover()
for what in ("tool", "prompt", "resource"):
    loop.subscribe(what, changed)
loop.on_gap(selectors.forget_all)
