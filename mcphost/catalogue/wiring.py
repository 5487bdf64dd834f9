"""The feed tells this process when a tenant's tools changed."""

from mcphost.catalogue import selectors
from mcphost.feed.loop import ChangeNews, loop


def on_tool(news: ChangeNews) -> None:
    """Drop the toolbox that changed, or all of them when the change is everybody's."""
    if news.tenant is None:
        selectors.forget_all()
    else:
        selectors.forget(news.tenant)


loop.subscribe("tool", on_tool)
loop.on_gap(selectors.forget_all)
