"""At start: load the code's functions, subscribe to changes of what tenants offer and of other processes'
functions, tell the vault which primitives use a secret."""

from mcphost.catalogue import kinds, remote_functions, selectors
from mcphost.feed.loop import ChangeNews, loop
from mcphost.feed.nodes import heartbeat
from mcphost.vault.secrets.ports import set_published_uses


def changed(news: ChangeNews) -> None:
    """Drop the offering of the changed tenant, or all when the change names no tenant."""
    if news.tenant is None:
        selectors.forget_all()
    else:
        selectors.forget(news.tenant)


kinds.discover()
for topic in ("tool", "prompt", "resource"):
    loop.subscribe(topic, changed)
loop.on_gap(selectors.forget_all)
heartbeat.functions = remote_functions.declared
heartbeat.on_functions(selectors.forget_all)
set_published_uses(selectors.published_uses)
