"""Caches of this room are dropped when the feed says so."""

from mcphost.feed.loop import ChangeNews, loop
from mcphost.tenants import selectors


def tenant_changed(news: ChangeNews) -> None:
    selectors.forget(news.tenant)


loop.subscribe("tenant", tenant_changed)
loop.on_gap(selectors.forget_all)
