"""Drop cached tenants when the change log reports a change of one."""

from mcphost.feed.loop import ChangeNews, loop
from mcphost.tenants import selectors


def tenant_changed(news: ChangeNews) -> None:
    selectors.forget(news.tenant)


loop.subscribe("tenant", tenant_changed)
loop.on_gap(selectors.forget_all)
