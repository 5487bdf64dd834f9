"""At start: find what the code offers, and hear of every change of a tenant's tools."""

from mcphost.catalogue import kinds, selectors
from mcphost.feed.loop import ChangeNews, loop


def on_tool(news: ChangeNews) -> None:
    """Drop the toolbox that changed, or all of them when the change is everybody's."""
    if news.tenant is None:
        selectors.forget_all()
    else:
        selectors.forget(news.tenant)


kinds.discover()
loop.subscribe("tool", on_tool)
loop.on_gap(selectors.forget_all)
